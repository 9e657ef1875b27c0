import { Counter, Gauge, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { type FlowController, roundRobin } from '../../../src/index.js';
import { exposition, prometheusMetrics } from '../../../src/observability/prometheus/index.js';
import { key, leaseOf, makeFlow, request } from '../../support/flow.js';

async function partsOf(register: Registry): Promise<string[]> {
  const parts: string[] = [];
  for await (const part of exposition(register)) parts.push(part);
  return parts;
}

async function textOf(register: Registry): Promise<string> {
  return (await partsOf(register)).join('');
}

/** Requests of as many tenants wait, and every tenant has series of each histogram. */
function busy(tenants: number, register: Registry, inferencePool = ''): FlowController {
  const { flow } = makeFlow({ saturationDetector: () => 2, defaultBand: { fairness: roundRobin() } });
  prometheusMetrics(flow, { register, inferencePool });
  for (let index = 0; index < tenants; index++) {
    void flow.enqueue(request, key(`tenant-${index}`));
    flow.tryEnqueue(request, key(`tenant-${index}`));
  }
  return flow;
}

const samplesIn = (part: string): number => part.split('\n').filter((line) => /^\w/.test(line)).length;

describe('exposition', () => {
  it('gives what register.metrics() answers, in parts of at most 500 samples', async () => {
    const register = new Registry();
    busy(300, register);
    const parts = await partsOf(register);
    expect(parts.join('')).toBe(await register.metrics());
    expect(parts.length).toBeGreaterThan(2);
    expect(Math.max(...parts.map(samplesIn))).toBeLessThanOrEqual(500);
  });

  it('gives it the second time, from the text that it kept', async () => {
    const register = new Registry();
    const flow = busy(30, register);
    await textOf(register);
    flow.tryEnqueue(request, key('tenant-1'));
    void flow.enqueue(request, key('late'));
    expect(await textOf(register)).toBe(await register.metrics());
  });

  it('escapes what clients send', async () => {
    const register = new Registry();
    const flow = busy(1, register);
    for (const fairnessId of ['a"b', 'a\\b', 'a\nb', '\\n"\n']) void flow.enqueue(request, key(fairnessId));
    const text = await textOf(register);
    expect(text).toBe(await register.metrics());
    expect(text).toContain('fairness_id="a\\"b"');
  });

  it('prints the pools of two controllers, and metrics of the host among them', async () => {
    const register = new Registry();
    new Counter({ name: 'first', help: 'Of the host.', registers: [register], labelNames: ['a'] }).inc({ a: 'x' });
    busy(3, register, 'llama');
    busy(3, register, 'qwen');
    new Gauge({ name: 'last', help: 'Of the host.', registers: [register] }).set(Number.NaN);
    expect(await textOf(register)).toBe(await register.metrics());
  });

  it('is empty where the registry is', async () => {
    const register = new Registry();
    expect(await textOf(register)).toBe(await register.metrics());
  });

  it('leaves the text to a registry with default labels, and to one of OpenMetrics', async () => {
    const labelled = new Registry();
    labelled.setDefaultLabels({ pod: 'p-1' });
    const open = new Registry();
    open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    for (const register of [labelled, open]) {
      busy(3, register);
      expect(await partsOf(register)).toEqual([await register.metrics()]);
    }
    expect(await textOf(labelled)).toContain('pod="p-1"');
    expect(await textOf(open)).toContain('# EOF');
  });

  it('lets the event loop turn between parts, and tells no series twice that ends and comes back meanwhile', async () => {
    const { flow, clock } = makeFlow({ flowIdleTimeout: '1s', defaultBand: { fairness: roundRobin() } });
    const register = new Registry();
    prometheusMetrics(flow, { register });
    const use = async (fairnessId: string): Promise<void> => {
      const [first, second] = [flow.enqueue(request, key(fairnessId)), flow.enqueue(request, key(fairnessId))];
      leaseOf(await first).release();
      leaseOf(await second).release();
    };
    for (let index = 0; index < 100; index++) await use(`tenant-${index}`);
    let turns = 0;
    const count = (): void => {
      turns++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    const parts: string[] = [];
    for await (const part of exposition(register)) {
      parts.push(part);
      if (parts.length > 1) continue;
      clock.advance(5_000);
      flow.stats();
      for (let index = 0; index < 100; index++) await use(`tenant-${index}`);
    }
    clearImmediate(next);
    const series = parts
      .join('')
      .split('\n')
      .filter((line) => /^\w/.test(line))
      .map((line) => line.slice(0, line.lastIndexOf(' ')));
    expect(new Set(series).size).toBe(series.length);
    expect(series.length).toBeGreaterThan(500);
    expect(turns).toBeGreaterThan(1);
  });
});
