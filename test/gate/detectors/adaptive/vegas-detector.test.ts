import { describe, expect, it } from 'vitest';
import type { VegasOptions } from '../../../../src/gate/detectors/adaptive/vegas-detector.js';
import { FlowConfigError, vegas } from '../../../../src/index.js';
import { ClosedLoop } from '../../../support/closed-loop.js';
import { WindowFeed } from '../../../support/latency-windows.js';

/** Plays windows against a server of `slots` whose latency is exact: the limit that comes of them. */
function settle(slots: number, options: Partial<VegasOptions> = {}, windows = 60): number {
  const detector = vegas({ maxLimit: 1000, ...options });
  const feed = new WindowFeed(detector);
  for (let i = 0; i < windows; i++) feed.play({ ttftMs: 1000 * Math.max(1, detector.limit / slots) });
  return detector.limit;
}

describe('vegas', () => {
  it('settles with a few requests waiting: 56 for 50 slots, 106 for 100', () => {
    expect(settle(50)).toBe(56);
    expect(settle(100)).toBe(106);
  });

  it('takes a queue for normal when it begins with one', () => {
    expect(settle(10)).toBe(26);
    expect(settle(10, { initialLimit: 4 })).toBe(16);
  });

  it('steps by 6, by 1, not at all, and back by 1, as the queue grows', () => {
    // A limit of 20, the fastest 1000: the queue is ⌈20 · (1 − 1000 / latency)⌉.
    const next = (latency: number, more: object = {}): number => {
      const feed = new WindowFeed(vegas({ maxLimit: 1000 }));
      feed.play({ ttftMs: 1000 });
      return feed.play({ ttftMs: latency, ...more });
    };
    expect([1000, 1050, 1100, 1150, 1400, 1450, 9000].map((latency) => next(latency))).toEqual([
      26, 26, 21, 20, 20, 19, 19,
    ]);
    expect(next(1000, { drops: 1 })).toBe(19);
    expect(next(1000, { drops: 10 })).toBe(19);
    expect(next(1000, { peak: 9 })).toBe(20);
  });

  it('steps by tens of tens where the limit is in the hundreds', () => {
    const feed = new WindowFeed(vegas({ maxLimit: 1000, initialLimit: 200 }));
    feed.play({ ttftMs: 1000 });
    expect(feed.play({ ttftMs: 1000 })).toBe(212);
    expect(feed.play({ ttftMs: 9000 })).toBe(210);
  });

  it('changes nothing in the window that is faster than all before', () => {
    const feed = new WindowFeed(vegas({ maxLimit: 1000 }));
    expect([1000, 900, 800].map((ttftMs) => feed.play({ ttftMs }))).toEqual([20, 20, 20]);
  });

  it('measures the fastest anew, and so takes the load of that moment for normal', () => {
    expect(settle(10, { probeMultiplier: 1 }, 400)).toBeGreaterThan(60);
  });

  it('probes earlier where a source of jitter says so', () => {
    const firstRise = (random?: () => number): number => {
      const feed = new WindowFeed(vegas({ minLimit: 10, maxLimit: 20, probeMultiplier: 10, random }));
      let limit = feed.play({ ttftMs: 1000 });
      for (let windows = 2; windows < 1000; windows++) {
        const before = limit;
        limit = feed.play({ ttftMs: 9000 });
        if (limit > before) return windows;
      }
      return Number.POSITIVE_INFINITY;
    };
    // It falls to 10, where probes come after 100 windows; the next one rises.
    expect(firstRise()).toBe(101);
    expect(firstRise(() => 0.5)).toBe(76);
    expect(firstRise(() => 0)).toBe(51);
  });

  it('is of no use where latencies vary: most of the server idles', () => {
    const loop = new ClosedLoop({ slots: 50, sigma: 1, detectors: [vegas({ maxLimit: 1000, statistic: 'p50' })] });
    loop.run(300);
    expect(loop.run(300)).toBeLessThan(0.6);
  });

  it.each([50, 100])('keeps 3λ to 6λ waiting at a server of %i slots and exact service times', (slots) => {
    const detector = vegas({ maxLimit: 1000 });
    const loop = new ClosedLoop({ slots, detectors: [detector] });
    loop.run(200);
    expect(loop.run(60)).toBeGreaterThan(0.99);
    const lambda = Math.floor(Math.log10(detector.limit));
    expect(detector.limit - slots).toBeGreaterThanOrEqual(3 * lambda);
    expect(detector.limit - slots).toBeLessThanOrEqual(6 * lambda);
  });

  it.each([[{}], [{ maxLimit: 10, probeMultiplier: 0 }], [{ maxLimit: 10, random: 0.5 }]])('rejects %o', (options) => {
    expect(() => vegas(options as VegasOptions)).toThrow(FlowConfigError);
  });
});
