/** Files of NVIDIA Dynamo's router in both forms that it has had, as sections of a gateway file. */
import { describe, expect, it } from 'vitest';
import { sectionsFor } from '../../examples/dynamo-policy-classes.mjs';
import { loadGatewayConfig } from '../../src/gateway/index.js';

const upstreams = [{ id: 'frontend', url: 'http://127.0.0.1:8000', priority: 'dynamo' }];

/** Source: ai-dynamo/dynamo, examples/router/policy-class-queues.yaml, at 35410e6a. */
const families = {
  default_policy_family: 'standard',
  uncached_isl_buckets: [{ min_tokens: 0, bucket: 'all' }],
  policy_classes: [
    { name: 'usual', policy_family: 'standard', cache_bucket: 'all', quantum: 512, busy_worker_ratio: 0.95 },
    { name: 'fast', policy_family: 'latency', cache_bucket: 'all', quantum: 1024, queue_policy: 'wspt' },
  ],
  models: {},
};
/** Source: its docs, Deficit Round Robin Queue Scheduling, in 2026-09: flat classes with deadlines. */
const flat = {
  default_policy_class: 'standard',
  policy_classes: [
    { name: 'standard', slo_ms: 30_000, quantum: 512, prefill_busy_threshold: 0, request_queue_limit_per_worker: 32 },
    { name: 'latency', slo_ms: 3_000, quantum: 2048, prefill_busy_threshold: 0, request_queue_limit_per_worker: 8 },
  ],
};

describe('policy classes of Dynamo', () => {
  it('become bands with its deadlines, limits for all servers, and shares by its quanta', () => {
    const { sections, left } = sectionsFor(flat, 3);
    expect(sections.objectives).toEqual({ standard: 0, latency: 1 });
    expect(sections.policyClasses).toEqual(['standard', 'latency']);
    expect(sections.flowControl.priorityBands).toEqual([
      { priority: 0, defaultRequestTTL: '30000ms', maxRequests: 96 },
      { priority: 1, defaultRequestTTL: '3000ms', maxRequests: 24 },
    ]);
    expect(sections.plugins[1]?.parameters).toEqual({ weights: { 0: 1, 1: 4 } });
    expect(left).toEqual(['prefill_busy_threshold']);
  });

  it('in families become a band for each, and the cache is left to the router', () => {
    const { sections, left } = sectionsFor(families, 1);
    expect(sections.objectives).toEqual({ standard: 0, latency: 1 });
    expect(sections.flowControl.priorityBands).toEqual([
      { priority: 0 },
      { priority: 1, orderingPolicyRef: 'shortest-first-ordering-policy' },
    ]);
    expect(left).toEqual(['uncached_isl_buckets', 'models', 'cache_bucket', 'busy_worker_ratio']);
  });

  it.each([flat, families])('make a file that a gateway takes', (file) => {
    const config = loadGatewayConfig({ listen: { port: 0 }, upstreams, ...sectionsFor(file, 1).sections });
    expect([...config.policyClasses.values()]).toHaveLength(2);
  });

  it('whose default is none of them are an error', () => {
    const wrong = { ...flat, default_policy_class: 'standart' };
    expect(() => sectionsFor(wrong, 1)).toThrow('the default must be a class or a family; got "standart"');
  });
});
