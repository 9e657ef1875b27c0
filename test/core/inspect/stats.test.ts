import { describe, expect, it } from 'vitest';
import { leastService, overviewOf, programAware, roundRobin, virtualTokenCounter } from '../../../src/index.js';
import { key, leaseOf, makeFlow, request } from '../../support/flow.js';

describe('stats().fairnessIndex', () => {
  it('is the Jain index of the fairness policy that keeps one', async () => {
    const fairness = programAware();
    const { flow, clock } = makeFlow({ bands: [{ priority: 0, fairness }] });
    expect(flow.stats().fairnessIndex).toBe(1);
    const first = leaseOf(await flow.enqueue(request, key('quick')));
    const waiting = flow.enqueue(request, key('slow'));
    clock.advance(1000);
    first.release();
    leaseOf(await waiting).release();
    // Mean waits of 0 and 1000 ms: (Σx)² / (n · Σx²) = 1 / 2.
    expect(flow.stats().fairnessIndex).toBe(0.5);
    expect(flow.stats().fairnessIndex).toBe(fairness.fairnessIndex);
  });

  it('is undefined where no policy keeps one', () => {
    expect(makeFlow({ defaultBand: { fairness: roundRobin() } }).flow.stats().fairnessIndex).toBeUndefined();
  });
});

describe('stats().ignoredReports', () => {
  it('counts reports that go backwards or exceed 2^53, once each, and goes on under another policy', () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: virtualTokenCounter() }] });
    const first = leaseOf(flow.tryEnqueue(request, key('a')));
    first.report({ promptTokens: 10, completionTokens: 5 });
    expect(flow.stats().ignoredReports).toBe(0);
    first.report({ completionTokens: 4 });
    first.report({ completionTokens: 2 ** 53 + 2 });
    expect(flow.stats().ignoredReports).toBe(2);
    first.release();
    flow.reconfigure({ bands: [{ priority: 0, fairness: leastService() }] });
    const second = leaseOf(flow.tryEnqueue(request, key('a')));
    second.report({ promptTokens: 10 });
    second.report({ promptTokens: 9 });
    second.release();
    expect(flow.stats()).toMatchObject({ ignoredReports: 3, pluginErrors: 0 });
  });

  it('keeps what was counted in a band that is gone', () => {
    const { flow, clock } = makeFlow({ defaultBand: { fairness: virtualTokenCounter() }, bandIdleTimeout: '5m' });
    const lease = leaseOf(flow.tryEnqueue(request, key('a', 7)));
    lease.report({ promptTokens: 10 });
    lease.report({ promptTokens: 9 });
    lease.release();
    clock.advance(3_600_000);
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ priority }) => priority)).toEqual([0]);
    expect(flow.stats().ignoredReports).toBe(1);
  });
});
