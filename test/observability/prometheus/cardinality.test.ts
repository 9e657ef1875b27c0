import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { BoundedLabel } from '../../../src/base/bounded-label.js';
import { roundRobin } from '../../../src/index.js';
import { prometheusMetrics } from '../../../src/observability/prometheus/index.js';
import { key, leaseOf, makeFlow, request } from '../../support/flow.js';
import { scrape, select, sum } from './exposition.js';

describe('a bounded label', () => {
  it('keeps the first values for ever, pinned ones besides, and lets the empty one pass', () => {
    const label = new BoundedLabel(2, ['vip']);
    expect(['a', 'b', 'c', 'vip', 'a', '', 'd'].map((value) => label.of(value))).toEqual([
      'a',
      'b',
      'other',
      'vip',
      'a',
      '',
      'other',
    ]);
  });

  it('keeps no long values and no names of shared flows', () => {
    const label = new BoundedLabel(10);
    expect(label.of('x'.repeat(257))).toBe('other');
    expect(label.of('x'.repeat(256))).toBe('x'.repeat(256));
    expect(label.of('\u0000overflow-3')).toBe('other');
  });
});

describe('the exposition stays bounded', () => {
  it('under a million fairness IDs, and counts every one of them', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 } });
    const register = new Registry();
    prometheusMetrics(flow, { register, maxFairnessIds: 20, pinnedFairnessIds: ['vip'] });
    for (let i = 0; i < 1_000_000; i++) flow.tryEnqueue(request, { fairnessId: `tenant-${i}`, priority: 0 });
    flow.tryEnqueue(request, key('vip'));
    const series = await scrape(register);
    const counts = select(series, 'request_queue_duration_seconds_count');
    expect(counts.map(({ labels }) => labels.fairness_id)).toEqual([
      ...Array.from({ length: 20 }, (_, i) => `tenant-${i}`),
      'other',
      'vip',
    ]);
    expect(sum(counts)).toBe(1_000_001);
    expect(sum(select(series, 'requests_total', { outcome: 'RejectedCapacity' }))).toBe(1_000_001);
    expect(series.length).toBeLessThan(1000);
  });

  it('below 6 MiB by default, under a million fairness IDs in two bands', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 }, bands: [{ priority: 0 }, { priority: -10 }] });
    const register = new Registry();
    prometheusMetrics(flow, { register });
    const bytes: number[] = [];
    for (let i = 0; i < 1_000_000; i++) {
      flow.tryEnqueue(request, {
        fairnessId: `tenant-${i}-of-somebody-with-a-long-name`,
        priority: i % 2 === 0 ? 0 : -10,
      });
      if (i === 500_000) bytes.push((await register.metrics()).length);
    }
    bytes.push((await register.metrics()).length);
    expect(bytes[1]).toBeLessThan(6 * 2 ** 20);
    // Digits of counts grow, and nothing else.
    expect((bytes[1] as number) - (bytes[0] as number)).toBeLessThan(1000);
  });

  it('under a flood of waiting fairness IDs', async () => {
    const { flow } = makeFlow({ saturationDetector: () => 2 });
    const register = new Registry();
    prometheusMetrics(flow, { register, maxFairnessIds: 3 });
    for (let i = 0; i < 500; i++) void flow.enqueue(request, key(`tenant-${i}`));
    const sizes = select(await scrape(register), 'queue_size');
    expect(sizes.filter(({ labels }) => labels.fairness_id !== 'other').map(({ value }) => value)).toEqual([1, 1, 1]);
    expect(sum(select(sizes, 'queue_size', { fairness_id: 'other' }))).toBe(497);
    await flow.close();
    expect(sum(select(await scrape(register), 'queue_size'))).toBe(0);
  });

  it('under a flood of priorities', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 } });
    const register = new Registry();
    prometheusMetrics(flow, { register });
    for (let priority = 0; priority < 5000; priority++) flow.tryEnqueue(request, key('a', priority));
    const series = select(await scrape(register), 'requests_total', { outcome: 'RejectedCapacity' });
    expect(series).toHaveLength(102);
    expect(sum(series)).toBe(5000);
    expect(sum(select(series, 'requests_total', { priority: 'other' }))).toBe(5000 - 101);
  });

  it('under every outcome, model and priority of a thousand fairness IDs, and counts every request', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 }, saturationDetector: () => 2 });
    const register = new Registry();
    const named = (request: { model?: string }): string => request.model ?? '';
    prometheusMetrics(flow, { register, modelName: named as never, targetModelName: named as never });
    let sent = 0;
    const send = (count: number): void => {
      for (let index = 0; index < count; index++, sent++) {
        const given = {
          byteSize: 1,
          model: `m${index % 7}`,
          signal: index % 3 === 0 ? AbortSignal.abort() : undefined,
        };
        flow.tryEnqueue(given as never, key(`tenant-${index % 900}`, index % 5));
      }
    };
    send(40_000);
    const bytes = (await register.metrics()).length;
    const series = await scrape(register);
    expect(bytes).toBeLessThan(8 * 2 ** 20);
    expect(select(series, 'request_queue_duration_seconds_count').length).toBeLessThan(1100);
    expect(select(series, 'queue_size').length).toBeLessThan(1100);
    expect(sum(select(series, 'request_queue_duration_seconds_count'))).toBe(sent);
  });

  it('under pairs of models, each of them one of few', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 } });
    const register = new Registry();
    const of = (name: 'model' | 'target') => ((request: Record<string, string>) => request[name]) as never;
    const dynamo = { endpoint: of('target') };
    prometheusMetrics(flow, {
      register,
      maxSeries: 1e6,
      modelName: of('model'),
      targetModelName: of('target'),
      dynamo,
    });
    for (let index = 0; index < 20_000; index++) {
      flow.tryEnqueue({ byteSize: 1, model: `m${index % 200}`, target: `t${index % 99}` } as never, key());
    }
    const series = await scrape(register);
    expect(select(series, 'request_queue_duration_seconds_count').length).toBeLessThanOrEqual(1001);
    const rejections = series.filter(({ name }) => name === 'dynamo_frontend_model_rejection_total');
    expect(rejections.length).toBeLessThanOrEqual(1100);
    expect(sum(rejections)).toBe(20_000);
  });

  it('makes room again when flows are forgotten', async () => {
    const { flow, clock } = makeFlow({ flowIdleTimeout: '1s', defaultBand: { fairness: roundRobin() } });
    const register = new Registry();
    prometheusMetrics(flow, { register, maxSeries: 2 });
    const use = async (fairnessId: string): Promise<void> => {
      const [first, second] = [flow.enqueue(request, key(fairnessId)), flow.enqueue(request, key(fairnessId))];
      leaseOf(await first).release();
      leaseOf(await second).release();
    };
    for (const fairnessId of ['a', 'b', 'c']) await use(fairnessId);
    const labels = async () =>
      select(await scrape(register), 'request_queue_duration_seconds_count').map(({ labels }) => labels.fairness_id);
    expect(await labels()).toEqual(['a', 'b', 'other']);
    clock.advance(5_000);
    flow.stats();
    await use('d');
    expect(await labels()).toContain('d');
  });

  it('lets the event loop turn between one long metric and the next', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 } });
    const register = new Registry();
    prometheusMetrics(flow, { register });
    for (let index = 0; index < 16_000; index++) flow.tryEnqueue(request, key(`tenant-${index % 900}`));
    let turns = 0;
    const count = (): void => {
      turns++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    await register.metrics();
    clearImmediate(next);
    expect(turns).toBeGreaterThan(1);
  });
});
