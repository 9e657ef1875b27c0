import { describe, expect, it } from 'vitest';
import * as z from 'zod/mini';
import { FlowConfigError } from '../../src/options/flow-config-error.js';
import { defaultRegistry } from '../../src/plugins/default-registry.js';
import { definePlugin } from '../../src/plugins/define-plugin.js';
import { PluginRegistry } from '../../src/plugins/registry.js';

const newest = definePlugin({
  kind: 'ordering',
  type: 'newest-first',
  parameters: z.strictObject({}),
  create: () => ({ type: 'newest-first', compare: (a, b) => b.sequence - a.sequence }),
});

describe('PluginRegistry', () => {
  it('is a value: adding leaves the old one as it was', () => {
    const empty = new PluginRegistry();
    const one = empty.add(newest);
    expect(empty.types()).toEqual([]);
    expect(one.types()).toEqual(['newest-first']);
    expect(one.types('fairness')).toEqual([]);
    expect(one.kindOf('newest-first')).toBe('ordering');
    expect(one.kindOf('oldest-first')).toBeUndefined();
  });

  it('makes a new plugin each time', () => {
    const registry = new PluginRegistry([newest]);
    expect(registry.create('newest-first')).not.toBe(registry.create('newest-first'));
  });

  it('refuses a type that is taken', () => {
    expect(() => defaultRegistry().add(newest).add(newest)).toThrow(
      'PluginRegistry: type: expected a type name that is not taken; got "newest-first", which is an ordering policy already',
    );
  });

  it('lists the known types when asked for an unknown one', () => {
    expect(() => new PluginRegistry([newest]).create('newest')).toThrow(FlowConfigError);
    expect(() => new PluginRegistry([newest]).create('newestfirst')).toThrow(
      'PluginRegistry: type: expected one of the known plugin types newest-first (did you mean "newest-first"?); got "newestfirst"',
    );
    expect(() => new PluginRegistry().create('x')).toThrow('expected one of the known plugin types (none); got "x"');
  });
});

describe('defaultRegistry', () => {
  it('knows every built-in plugin by its type name', () => {
    const registry = defaultRegistry();
    expect(registry.types('fairness')).toEqual(['global-strict-fairness-policy', 'program-aware-fairness', 'round-robin-fairness-policy']);
    expect(registry.types('ordering')).toEqual(['edf-ordering-policy', 'fcfs-ordering-policy', 'slo-deadline-ordering-policy']);
    expect(registry.types('saturationDetector')).toEqual(['concurrency-detector', 'utilization-detector']);
    expect(registry.types('usageLimit')).toEqual(['static-usage-limit-policy']);
    expect(registry.types('endpointPicker')).toEqual(['least-loaded-picker']);
  });

  it.each(defaultRegistry().types())('makes a %s without parameters', (type) => {
    expect(defaultRegistry().create(type)).toMatchObject({ type });
  });

  it.each<[string, object]>([
    ['concurrency-detector', { concurrencyMode: 'hybrid', maxConcurrency: 50, maxTokenConcurrency: 5000, headroom: 0.2 }],
    ['concurrency-detector', { inFlightLoadProducerName: 'inflight-load-producer' }],
    ['utilization-detector', { queueDepthThreshold: 5, kvCacheUtilThreshold: 0.8, metricsStalenessThreshold: '200ms', headroom: 2 }],
    ['static-usage-limit-policy', { threshold: 0.9 }],
  ])('accepts parameters of %s as files spell them: %j', (type, parameters) => {
    expect(defaultRegistry().create(type, parameters)).toMatchObject({ type });
  });

  it.each<[string, object, string]>([
    ['concurrency-detector', { maxConcurrency: 'invalid_type' }, 'parameters.maxConcurrency'],
    ['concurrency-detector', { maxTokenConcurrency: 0 }, 'parameters.maxTokenConcurrency'],
    ['concurrency-detector', { concurrencyMode: 'magic' }, 'parameters.concurrencyMode'],
    ['concurrency-detector', { headroom: -0.1 }, 'parameters.headroom'],
    ['concurrency-detector', { maxConcurency: 5 }, 'parameters.maxConcurency'],
    ['utilization-detector', { queueDepthThreshold: 0 }, 'parameters.queueDepthThreshold'],
    ['utilization-detector', { kvCacheUtilThreshold: 0 }, 'parameters.kvCacheUtilThreshold'],
    ['utilization-detector', { kvCacheUtilThreshold: 1.1 }, 'parameters.kvCacheUtilThreshold'],
    ['utilization-detector', { metricsStalenessThreshold: '0s' }, 'parameters.metricsStalenessThreshold'],
    ['static-usage-limit-policy', { threshold: 'x' }, 'parameters.threshold'],
    ['round-robin-fairness-policy', { weight: 1 }, 'parameters.weight'],
    ['concurrency-detector', [], 'parameters'],
  ])('refuses %s with %j', (type, parameters, path) => {
    expect(() => defaultRegistry().create(type, parameters)).toThrow(
      expect.objectContaining({ issues: [expect.objectContaining({ path })] }),
    );
  });
});
