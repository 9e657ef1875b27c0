import { describe, expect, it } from 'vitest';
import { busyThresholdDetector, EndpointPool, type EndpointView } from '../../../src/index.js';
import type { BusyThresholds, RankLoad } from '../../../src/types/index.js';
import { key, makeFlow, request, turns } from '../../support/flow.js';

const idle = { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: 0 };

function poolOf(...ranksOf: (readonly RankLoad[])[]): EndpointPool {
  const pool = new EndpointPool();
  ranksOf.forEach((ranks, index) => {
    pool.add(`worker-${index}`);
    pool.report(`worker-${index}`, { ...idle, ranks });
  });
  return pool;
}
const isBusy = (thresholds: BusyThresholds, ...ranks: RankLoad[]): boolean =>
  busyThresholdDetector(thresholds).saturation(poolOf(ranks), 0) === 1;

describe('busyThresholdDetector', () => {
  it('calls a rank busy by any of its figures, strictly', () => {
    const blocks = { activeDecodeBlocksThreshold: 0.85 };
    expect(isBusy(blocks, { activeDecodeBlocks: 85, totalBlocks: 100 })).toBe(false);
    expect(isBusy(blocks, { activeDecodeBlocks: 86, totalBlocks: 100 })).toBe(true);
    expect(isBusy(blocks, { activeDecodeBlocks: 10, kvUsedBlocks: 86, totalBlocks: 100 })).toBe(true);
    expect(isBusy({ activePrefillTokensThreshold: 100 }, { activePrefillTokens: 100 })).toBe(false);
    expect(isBusy({ activePrefillTokensThreshold: 100 }, { activePrefillTokens: 101 })).toBe(true);
    const frac = { activePrefillTokensThresholdFrac: 0.3335 };
    expect(isBusy(frac, { activePrefillTokens: 333, maxNumBatchedTokens: 1000 })).toBe(false);
    expect(isBusy(frac, { activePrefillTokens: 334, maxNumBatchedTokens: 1000 })).toBe(true);
  });

  it('does not look at what is not known', () => {
    expect(isBusy({ activeDecodeBlocksThreshold: 0 }, { activeDecodeBlocks: 86 })).toBe(false);
    expect(isBusy({ activeDecodeBlocksThreshold: 0 }, { totalBlocks: 100 })).toBe(false);
    expect(isBusy({ activeDecodeBlocksThreshold: 0 }, { activeDecodeBlocks: 5, totalBlocks: 0 })).toBe(false);
    expect(isBusy({ activePrefillTokensThreshold: 0 }, {})).toBe(false);
    expect(isBusy({ activePrefillTokensThresholdFrac: 1.5 }, { activePrefillTokens: 15_000_000 })).toBe(false);
    expect(isBusy({ activePrefillTokensThresholdFrac: 1.5 }, { activePrefillTokens: 15_000_001 })).toBe(true);
    expect(isBusy({}, { activePrefillTokens: 1e15, kvUsedBlocks: 100, totalBlocks: 100 })).toBe(false);
  });

  it('calls a worker busy when all its ranks are, and free when none is known', () => {
    const thresholds = { activePrefillTokensThreshold: 10 };
    expect(isBusy(thresholds, { activePrefillTokens: 11 }, { activePrefillTokens: 3 })).toBe(false);
    expect(isBusy(thresholds, { activePrefillTokens: 11 }, {})).toBe(false);
    expect(isBusy(thresholds, { activePrefillTokens: 11 }, { activePrefillTokens: 12 })).toBe(true);
    expect(isBusy(thresholds)).toBe(false);
    const silent = new EndpointPool();
    silent.add('w');
    expect(busyThresholdDetector(thresholds).saturation(silent, 0)).toBe(0);
    expect(busyThresholdDetector(thresholds).saturation(new EndpointPool(), 0)).toBe(1);
  });

  it('moves thresholds one by one, leaves out what is left out, and switches off at null', () => {
    const detector = busyThresholdDetector({ activeDecodeBlocksThreshold: 0.5 });
    detector.update({ activePrefillTokensThreshold: 100 });
    expect(detector.thresholds).toEqual({ activeDecodeBlocksThreshold: 0.5, activePrefillTokensThreshold: 100 });
    detector.update({ activeDecodeBlocksThreshold: null, activePrefillTokensThreshold: undefined });
    expect(detector.thresholds).toEqual({ activePrefillTokensThreshold: 100 });
  });

  it('rejects wrong thresholds, and then leaves all as they were', () => {
    expect(() => busyThresholdDetector({ activeDecodeBlocksThreshold: 1.1 })).toThrow(
      'busyThresholdDetector: activeDecodeBlocksThreshold: expected a number from 0 to 1; got 1.1 (number)',
    );
    expect(() => busyThresholdDetector({ activePrefillTokensThreshold: -1 })).toThrow('activePrefillTokensThreshold');
    expect(() => busyThresholdDetector({ activePrefillTokensThresholdFrac: -1 })).toThrow(
      'activePrefillTokensThresholdFrac',
    );
    const detector = busyThresholdDetector({ activeDecodeBlocksThreshold: 0.5 });
    const wrong = {
      activeDecodeBlocksThreshold: 0.9,
      activePrefillTokensThreshold: -1,
      activePrefillTokensThresholdFrac: Number.NaN,
    };
    expect(() => detector.update(wrong)).toThrow(
      /^busyThresholdDetector\.update: .*activePrefillTokensThreshold: expected an integer from 0 up, or null; got -1.*Frac/s,
    );
    expect(() => detector.update({ activeDecodeBlocks: 1 } as object)).toThrow('activeDecodeBlocksThreshold');
    expect(detector.thresholds).toEqual({ activeDecodeBlocksThreshold: 0.5 });
  });

  it('weighs servers, and keeps those that are free', () => {
    const pool = new EndpointPool();
    pool.add('small');
    pool.add('large', { weight: 3 });
    for (const id of ['small', 'large'])
      pool.report(id, { ...idle, ranks: [{ activePrefillTokens: id === 'large' ? 5 : 0 }] });
    const detector = busyThresholdDetector({ activePrefillTokensThreshold: 4 });
    expect([detector.type, detector.needsPool, detector.saturation(pool, 0)]).toEqual([
      'busy-threshold-detector',
      true,
      0.75,
    ]);
    expect(detector.filter?.(pool.endpoints, 0).map(({ id }) => id)).toEqual(['small']);
  });

  it('compares with the threshold whatever the other figures of a rank are', () => {
    const both = {
      activePrefillTokensThreshold: 100,
      activePrefillTokensThresholdFrac: 0.5,
      activeDecodeBlocksThreshold: 0.5,
    };
    const calm = { activePrefillTokens: 0, maxNumBatchedTokens: 1000, activeDecodeBlocks: 0, totalBlocks: 10 };
    expect(isBusy(both, calm)).toBe(false);
    expect(isBusy(both, { ...calm, activePrefillTokens: 101 })).toBe(true);
    expect(isBusy({ ...both, activePrefillTokensThreshold: 1000 }, { ...calm, activePrefillTokens: 501 })).toBe(true);
    expect(isBusy(both, { ...calm, activeDecodeBlocks: 6 })).toBe(true);
    expect(isBusy(both, { totalBlocks: 10, kvUsedBlocks: 6 })).toBe(true);
  });

  it('tells each of its listeners of an update, as often as it subscribed, until it stops', () => {
    const detector = busyThresholdDetector();
    let heard = 0;
    const listener = (): void => void heard++;
    const stops = [detector.subscribe?.(listener), detector.subscribe?.(listener)];
    detector.update({});
    expect(heard).toBe(2);
    stops[0]?.();
    detector.update({});
    expect(heard).toBe(3);
    expect(Object.isFrozen(detector.thresholds)).toBe(true);
  });

  it('lets waiting requests go in the turn in which a threshold is raised', async () => {
    const pool = poolOf([{ activePrefillTokens: 50 }]);
    const detector = busyThresholdDetector({ activePrefillTokensThreshold: 10 });
    const { flow, clock } = makeFlow({ pool, saturationDetector: detector });
    let type = '';
    void flow.enqueue(request, key()).then((outcome) => (type = outcome.type));
    await turns();
    expect(type).toBe('');
    expect(clock.pendingTimers).toBe(1); // the request's budget: nobody looks again in vain
    detector.update({ activePrefillTokensThreshold: 100 });
    await turns();
    expect(type).toBe('Dispatched');
    await flow.close();
    detector.update({ activePrefillTokensThreshold: 1 });
  });

  /** docs/policies/busy-threshold-detector.md */
  it('sends requests to the free worker, and waits when the last one is busy', () => {
    const busy = { activeDecodeBlocks: 90, activePrefillTokens: 0, totalBlocks: 100 };
    const pool = poolOf(
      [busy],
      [{ ...busy, activeDecodeBlocks: 40 }, busy],
      [{ ...busy, activeDecodeBlocks: 0, activePrefillTokens: 12_000 }],
    );
    const detector = busyThresholdDetector({ activeDecodeBlocksThreshold: 0.85, activePrefillTokensThreshold: 10_000 });
    const { flow } = makeFlow({ pool, saturationDetector: detector });
    for (let i = 0; i < 3; i++) {
      const outcome = flow.tryEnqueue(request, key());
      expect(outcome?.type === 'Dispatched' && outcome.lease.endpoint?.id).toBe('worker-1');
    }
    expect(flow.stats().saturation).toBeCloseTo(2 / 3, 12);
    pool.report('worker-1', { ...idle, ranks: [{ activeDecodeBlocks: 86 }, {}] });
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    expect(flow.stats().saturation).toBe(1);
  });
});

describe('ranks in reports', () => {
  it('keep what a report leaves out, and are as many as it says', () => {
    const pool = poolOf([{ totalBlocks: 100, kvUsedBlocks: 5 }, { totalBlocks: 100 }]);
    pool.report('worker-0', { ...idle, ranks: [{ kvUsedBlocks: 0 }, { activePrefillTokens: 3 }] });
    expect(pool.get('worker-0')?.metrics?.ranks).toEqual([
      { totalBlocks: 100, kvUsedBlocks: 0 },
      { totalBlocks: 100, activePrefillTokens: 3 },
    ]);
    pool.report('worker-0', idle);
    expect(pool.get('worker-0')?.metrics?.ranks).toHaveLength(2);
    pool.report('worker-0', { ...idle, ranks: [{}] });
    expect(pool.get('worker-0')?.metrics?.ranks).toEqual([{ totalBlocks: 100, kvUsedBlocks: 0 }]);
  });

  it('forget a capacity that the worker does not know any more', () => {
    const pool = poolOf([{ totalBlocks: 100, kvUsedBlocks: 90 }]);
    const detector = busyThresholdDetector({ activeDecodeBlocksThreshold: 0.5 });
    const worker = pool.endpoints[0] as EndpointView;
    expect(detector.isBusy(worker)).toBe(true);
    pool.report('worker-0', { ...idle, ranks: [{ totalBlocks: null }] });
    expect(worker.metrics?.ranks).toEqual([{ kvUsedBlocks: 90 }]);
    expect(detector.isBusy(worker)).toBe(false);
  });

  it('must be figures', () => {
    const pool = poolOf([]);
    const report = (ranks: unknown) => () => pool.report('worker-0', { ...idle, ranks: ranks as readonly RankLoad[] });
    expect(report(5)).toThrow('ranks: expected an array with one entry for each rank; got 5 (number)');
    expect(report([null])).toThrow('ranks[0]: expected an object; got null');
    expect(report([{}, { totalBlocks: -1 }])).toThrow(
      'ranks[1].totalBlocks: expected a number from 0 up, or null; got -1 (number)',
    );
    expect(report([{ kvUsedBlocks: Number.NaN }])).toThrow('ranks[0].kvUsedBlocks');
    expect(pool.get('worker-0')?.metrics?.ranks).toEqual([]);
  });
});
