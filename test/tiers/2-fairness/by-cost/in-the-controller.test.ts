import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  type FlowFairnessPolicy,
  inFlightEviction,
  type Lease,
  overviewOf,
  shadow,
  virtualTokenCounter,
} from '../../../../src/index.js';
import type { CostFairSelector } from '../../../../src/tiers/2-fairness/by-cost/cost-fair-selector.js';
import type { FlowSelector } from '../../../../src/types/index.js';
import { dial, key, leaseOf, makeFlow, turns } from '../../../support/flow.js';

/** The policy, and the books of the selectors that it made. */
function watched(policy: FlowFairnessPolicy): FlowFairnessPolicy & { books: CostFairSelector['book'][] } {
  const books: CostFairSelector['book'][] = [];
  return {
    type: policy.type,
    books,
    createSelector(band): FlowSelector {
      const selector = policy.createSelector(band);
      books.push((selector as CostFairSelector).book);
      return selector;
    },
  };
}

describe('in a controller, a request is charged once', () => {
  it.each([
    ['that ends well', (lease: Lease) => lease.report({ promptTokens: 20, completionTokens: 30 }), 80],
    [
      'part of whose prompt was cached',
      (lease: Lease) => lease.report({ promptTokens: 20, completionTokens: 30, cachedPromptTokens: 15 }),
      65,
    ],
    [
      'one figure of which is reported to fall, and another to rise',
      (lease: Lease) => {
        lease.report({ promptTokens: 20, completionTokens: 5 });
        lease.report({ promptTokens: 10, completionTokens: 30 });
      },
      80,
    ],
    ['that is broken off', (lease: Lease) => lease.report({ promptTokens: 10 }), 10],
    ['of which nothing is known', () => {}, 10 + 2 * 256],
    ['that reached no server', (lease: Lease) => lease.unsent(), 0],
    ['that consumed nothing', (lease: Lease) => lease.report({ promptTokens: 0, completionTokens: 0 }), 0],
    ['whose client left before its first token', (lease: Lease) => lease.abort(), 10],
    [
      'whose client left after its first tokens',
      (lease: Lease) => {
        lease.report({ completionTokens: 4 });
        lease.abort();
      },
      18,
    ],
    ['whose signal nobody used', (lease: Lease) => void lease.signal, 10 + 2 * 256],
  ])('%s', (_, run, cost) => {
    const fairness = watched(virtualTokenCounter());
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness }] });
    const lease = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('a')));
    expect(fairness.books[0]).toMatchObject({ settledCost: 0, openCost: 522, openCharges: 1 });
    run(lease);
    lease.release();
    lease.release();
    lease.report({ promptTokens: 1000 });
    expect(fairness.books[0]).toMatchObject({ settledCost: cost, openCost: 0, openCharges: 0 });
  });

  it('that waited, also under an ordering that lets go of its payload', async () => {
    const fairness = watched(virtualTokenCounter());
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness }] });
    const sent = ['a', 'b', 'a'].map((name) => flow.enqueue({ byteSize: 1, tokens: 10 }, key(name)));
    detector.turnTo(0);
    for (const lease of (await Promise.all(sent)).map(leaseOf)) {
      lease.report({ promptTokens: 10, completionTokens: 5 });
      lease.release();
    }
    expect(fairness.books[0]).toMatchObject({ settledCost: 60, openCost: 0, openCharges: 0 });
  });

  it('that is evicted and waits once more: what it consumed, and then what it cost', async () => {
    const fairness = watched(virtualTokenCounter());
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      eviction: inFlightEviction(),
      bands: [{ priority: 10 }, { priority: -10, fairness }],
    });
    const victim = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('a', -10)));
    victim.report({ promptTokens: 7 });
    const urgent = flow.enqueue({ byteSize: 1 }, key('b', 10));
    expect(victim.isEvicted).toBe(true);
    const again = victim.requeue();
    expect(fairness.books[0]).toMatchObject({ settledCost: 7, openCost: 0, openCharges: 0 });
    leaseOf(await urgent).release();
    const lease = leaseOf(await again);
    lease.report({ promptTokens: 10, completionTokens: 10 });
    lease.release();
    expect(fairness.books[0]).toMatchObject({ settledCost: 37, openCost: 0, openCharges: 0 });
  });

  it('that is evicted before its first token, and does not wait again: its prompt', async () => {
    const fairness = watched(virtualTokenCounter());
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      eviction: inFlightEviction(),
      bands: [{ priority: 10 }, { priority: -10, fairness }],
    });
    const victim = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('a', -10)));
    const urgent = flow.enqueue({ byteSize: 1 }, key('b', 10));
    victim.release();
    expect(fairness.books[0]).toMatchObject({ settledCost: 10, openCost: 0, openCharges: 0 });
    leaseOf(await urgent).release();
  });

  it('that was held too long: what it was predicted to cost, for nobody called it off', () => {
    const fairness = watched(virtualTokenCounter());
    const { flow, clock } = makeFlow({
      maxLeaseMs: 1000,
      overdueLeases: 'release',
      bands: [{ priority: 0, fairness }],
    });
    flow.on('leaseOverdue', () => {});
    leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('a')));
    clock.advance(5000);
    expect(fairness.books[0]).toMatchObject({ settledCost: 10 + 2 * 256, openCharges: 0 });
  });

  it('in shadow mode, where it was called off after it had gone ahead of its turn: its prompt', () => {
    const fairness = watched(virtualTokenCounter());
    const { flow, clock } = makeFlow({
      mode: shadow(),
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      bands: [{ priority: 0, fairness }],
    });
    const first = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('a')));
    const second = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('a')));
    second.abort();
    first.report({ promptTokens: 1 });
    first.release();
    second.release();
    clock.advance(10_000);
    expect(fairness.books[0]).toMatchObject({ settledCost: 11, openCharges: 0 });
  });

  it('that outlives the policy which let it go: the new one does not settle what it never charged', () => {
    const before = watched(virtualTokenCounter());
    const after = watched(virtualTokenCounter());
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: before }] });
    const lease = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('a')));
    flow.reconfigure({ bands: [{ priority: 0, fairness: after }] });
    lease.report({ promptTokens: 500 });
    lease.release();
    expect(after.books[0]).toMatchObject({ settledCost: 0, openCost: 0, openCharges: 0, ignoredReports: 0 });
    expect(flow.stats().pluginErrors).toBe(0);
  });
});

describe('in a controller, requests of a size', () => {
  it('share a pool of eight seats by tokens, and round robin would give the large ones nearly everything', async () => {
    const tokensOf: Record<string, number> = { large: 4000, small: 100 };
    const fairness = virtualTokenCounter({ workOf: ({ tokens }) => ({ promptTokens: tokens, completionTokens: 0 }) });
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 8 }),
      bands: [{ priority: 0, fairness }],
    });
    const received: Record<string, number> = { large: 0, small: 0 };
    const running: Lease[] = [];
    flow.on('dispatched', ({ item, lease }) => {
      running.push(lease);
      received[item.fairnessId] = (received[item.fairnessId] as number) + item.tokens;
    });
    for (let i = 0; i < 2000; i++) void flow.enqueue({ byteSize: 1, tokens: tokensOf.small as number }, key('small'));
    for (let i = 0; i < 60; i++) void flow.enqueue({ byteSize: 1, tokens: tokensOf.large as number }, key('large'));
    for (let i = 0; i < 1500; i++) {
      const lease = running.shift();
      lease?.report({ promptTokens: lease.tokens });
      lease?.release();
    }
    await turns();
    expect(Math.abs((received.large as number) - (received.small as number))).toBeLessThanOrEqual(4100 + 8 * 100);
  });

  it('show their policy by its type', () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: virtualTokenCounter() }] });
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.fairness).toBe('virtual-token-counter-fairness-policy');
  });

  it('tell of a function that fails, and go on', () => {
    const fairness = virtualTokenCounter({ cost: () => Number.NaN });
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness }] });
    leaseOf(flow.tryEnqueue({ byteSize: 1 }, key('a'))).release();
    expect(flow.stats()).toMatchObject({ inFlight: 0, pluginErrors: 2 });
  });
});
