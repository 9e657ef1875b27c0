import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { BoundedLabel } from '../../../src/base/bounded-label.js';
import { prometheusMetrics } from '../../../src/observability/prometheus/index.js';
import { key, makeFlow, request } from '../../support/flow.js';
import { scrape, select, sum } from './exposition.js';

describe('a bounded label', () => {
  it('keeps the first values for ever, pinned ones besides, and lets the empty one pass', () => {
    const label = new BoundedLabel(2, ['vip']);
    expect(['a', 'b', 'c', 'vip', 'a', '', 'd'].map((value) => label.of(value))).toEqual(['a', 'b', 'other', 'vip', 'a', '', 'other']);
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

  it('below 5 MiB by default, under a million fairness IDs in two bands', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 }, bands: [{ priority: 0 }, { priority: -10 }] });
    const register = new Registry();
    prometheusMetrics(flow, { register });
    const bytes: number[] = [];
    for (let i = 0; i < 1_000_000; i++) {
      flow.tryEnqueue(request, { fairnessId: `tenant-${i}-of-somebody-with-a-long-name`, priority: i % 2 === 0 ? 0 : -10 });
      if (i === 500_000) bytes.push((await register.metrics()).length);
    }
    bytes.push((await register.metrics()).length);
    expect(bytes[1]).toBeLessThan(5 * 2 ** 20);
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
});
