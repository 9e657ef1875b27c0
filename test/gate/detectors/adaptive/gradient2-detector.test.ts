import { describe, expect, it } from 'vitest';
import type { Gradient2Options } from '../../../../src/gate/detectors/adaptive/gradient2-detector.js';
import { FlowConfigError, gradient2 } from '../../../../src/index.js';
import { ClosedLoop } from '../../../support/closed-loop.js';
import { WindowFeed } from '../../../support/latency-windows.js';

/** The limits after windows of these latencies. */
function limitsOf(options: Partial<Gradient2Options>, ...latencies: readonly number[]): number[] {
  const feed = new WindowFeed(gradient2({ maxLimit: 1000, ...options }));
  return latencies.map((ttftMs) => feed.play({ ttftMs }));
}

describe('gradient2', () => {
  it('goes a fifth of the way to the limit and its queue', () => {
    expect(gradient2({ maxLimit: 1000 }).type).toBe('gradient2-detector');
    // 20 → 20.8 → 21.6 → 22.4; used is the whole number.
    expect(limitsOf({}, 100, 100, 100)).toEqual([20, 21, 22]);
    expect(limitsOf({ smoothing: 1 }, 100, 100)).toEqual([24, 28]);
    expect(limitsOf({ smoothing: 1, queueSize: 9 }, 100)).toEqual([29]);
  });

  it('tolerates half as much again, and then falls with the ratio, by half at most', () => {
    const options = { initialLimit: 100, smoothing: 1, queueSize: 0 };
    // The mean of the first two, 125, is long; 1.5 · 125 / 150 > 1.
    expect(limitsOf(options, 100, 150)).toEqual([100, 100]);
    expect(limitsOf(options, 100, 700)).toEqual([100, 85]); // 1.5 · 400 / 700
    expect(limitsOf(options, ...Array.from({ length: 10 }, () => 100), 1000).at(-1)).toBe(50);
  });

  it('forgets a slow past faster than it averages', () => {
    const slowAgain = (count: number): number => {
      const feed = new WindowFeed(gradient2({ maxLimit: 1000, smoothing: 1, queueSize: 0, initialLimit: 100 }));
      for (let i = 0; i < 10; i++) feed.play({ ttftMs: 1000 });
      for (let i = 0; i < count; i++) feed.play({ ttftMs: 100 });
      return feed.play({ ttftMs: 900 });
    };
    // Right after: the long run is still about 1000. Later it is down to 200, and 900 is slow.
    expect(slowAgain(1)).toBe(100);
    expect(slowAgain(60)).toBe(50);
  });

  it('averages a past that was less than twice as slow, and forgets it no faster', () => {
    const feed = new WindowFeed(gradient2({ maxLimit: 1000, smoothing: 1, queueSize: 0, initialLimit: 100 }));
    for (let i = 0; i < 10; i++) feed.play({ ttftMs: 150 });
    for (let i = 0; i < 30; i++) feed.play({ ttftMs: 100 });
    // The long run is about 145 still, and 200 is no slower than half as much again.
    expect(feed.play({ ttftMs: 200 })).toBe(100);
  });

  it('averages evenly over ten windows, and then by how far the long run goes back', () => {
    const options = { initialLimit: 100, smoothing: 1, queueSize: 0 };
    const ten = Array.from({ length: 10 }, () => 100);
    // 200 moves the long run of 600 windows by a third, and 400 that of 3 windows half of the way, to 250.
    expect(limitsOf(options, ...ten, 200).at(-1)).toBe(75);
    expect(limitsOf({ ...options, longWindows: 3 }, ...ten, 400).at(-1)).toBe(93);
  });

  it('forgets nothing of a past that was twice as slow and no more', () => {
    // The mean of 300, 100 and 500 is 300: 1.5 · 300 / 500.
    expect(limitsOf({ initialLimit: 100, smoothing: 1, queueSize: 0 }, 300, 100, 500)).toEqual([100, 100, 90]);
  });

  it('takes latencies of nothing for fast', () => {
    expect(limitsOf({ smoothing: 1 }, 0, 0)).toEqual([24, 28]);
  });

  it('does not fall below 20 unless told to', () => {
    const slower = Array.from({ length: 30 }, (_, i) => 100 * 2 ** i);
    expect(limitsOf({}, ...slower).at(-1)).toBe(20);
    expect(limitsOf({ minLimit: 1 }, ...slower).at(-1)).toBeLessThan(10);
    expect(limitsOf({ maxLimit: 8 }, ...slower).at(-1)).toBe(8);
  });

  it('takes a drop for the steepest gradient', () => {
    const feed = new WindowFeed(gradient2({ maxLimit: 1000, initialLimit: 100, smoothing: 1, queueSize: 0 }));
    expect(feed.play({ ttftMs: 100, drops: 1 })).toBe(50);
    expect(feed.play({ ttftMs: 100, drops: 10, peak: 26 })).toBe(25);
  });

  it('learns nothing of latencies from a window of drops alone', () => {
    const feed = new WindowFeed(gradient2({ maxLimit: 1000, initialLimit: 100, smoothing: 1, queueSize: 0 }));
    expect([100, 100].map((ttftMs) => feed.play({ ttftMs }))).toEqual([100, 100]);
    expect(feed.play({ ttftMs: 0, drops: 10 })).toBe(50);
    // The mean of 100, 100 and 400 is 200: 1.5 · 200 / 400.
    expect(feed.play({ ttftMs: 400 })).toBe(37);
  });

  it('stays where it is while less than half of it is in use, unless something is dropped', () => {
    const playedAt = (peak: number, drops = 0): number =>
      new WindowFeed(gradient2({ maxLimit: 1000, initialLimit: 100, smoothing: 1, maxFactor: 50 })).play({
        ttftMs: 100,
        peak,
        drops,
      });
    expect([playedAt(50), playedAt(49), playedAt(10), playedAt(10, 1)]).toEqual([104, 100, 100, 54]);
  });

  it('stays within a factor of what is in use, the less the more is in use', () => {
    const limitOf = (peak: number, options: Partial<Gradient2Options> = {}): number =>
      new WindowFeed(gradient2({ maxLimit: 1e6, minLimit: 1, initialLimit: 1e6, ...options })).play({
        ttftMs: 100,
        peak,
      });
    expect([1, 10, 100, 1000, 100_000].map((peak) => limitOf(peak))).toEqual([5, 40, 300, 2000, 120_000]);
    expect(limitOf(10, { maxFactor: 1.2 })).toBe(12);
  });

  it('drifts up to maxLimit under lasting load, with the server no faster for it', () => {
    const detector = gradient2({ maxLimit: 200 });
    const loop = new ClosedLoop({ slots: 10, detectors: [detector] });
    expect(loop.run(300)).toBeGreaterThan(0.99);
    expect(detector.limit).toBeGreaterThan(50);
    loop.run(1200);
    expect(detector.limit).toBe(200);
  });

  it('is held by maxFactor where there are only so many clients', () => {
    const limitAfter = (maxFactor: number): number => {
      const detector = gradient2({ maxLimit: 1000, maxFactor });
      new ClosedLoop({ slots: 10, sigma: 0.5, detectors: [detector], clients: 50 }).run(1500);
      return detector.limit;
    };
    expect(limitAfter(1.2)).toBe(60);
    expect(limitAfter(5)).toBeGreaterThan(90);
  });

  it.each([
    [{}],
    [{ maxLimit: 10, maxFactor: 1 }],
    [{ maxLimit: 10, tolerance: 0.9 }],
    [{ maxLimit: 10, smoothing: 0 }],
  ])('refuses %o', (options) => {
    expect(() => gradient2(options as Gradient2Options)).toThrow(FlowConfigError);
    expect(() => gradient2(options as Gradient2Options)).toThrow(/^gradient2: /);
  });
});
