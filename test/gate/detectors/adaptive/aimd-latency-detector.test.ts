import { describe, expect, it } from 'vitest';
import { jainIndex } from '../../../../src/base/jain-index.js';
import { aimdLatency } from '../../../../src/index.js';
import { ClosedLoop } from '../../../support/closed-loop.js';
import { WindowFeed } from '../../../support/latency-windows.js';

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('aimdLatency', () => {
  it('adds one for a window in time, and keeps nine tenths after one that was not', () => {
    const feed = new WindowFeed(aimdLatency({ targetMs: 1000 }));
    expect([1000, 999, 1001, 5000, 1, 1].map((ttftMs) => feed.play({ ttftMs }))).toEqual([21, 22, 19, 17, 18, 19]);
  });

  it('falls after a window with one drop in it, though the others were fast', () => {
    expect(new WindowFeed(aimdLatency({ targetMs: 1000 })).play({ ttftMs: 1, drops: 1 })).toBe(18);
  });

  it('falls although little of the limit is in use', () => {
    expect(new WindowFeed(aimdLatency({ targetMs: 1000 })).play({ ttftMs: 2000, peak: 1 })).toBe(18);
  });

  it('stops at its bounds', () => {
    const feed = new WindowFeed(aimdLatency({ targetMs: 1000, initialLimit: 4, minLimit: 3, maxLimit: 5 }));
    expect([1, 1, 9999, 9999, 9999].map((ttftMs) => feed.play({ ttftMs }))).toEqual([5, 5, 4, 3, 3]);
  });

  it('keeps what backoffRatio says', () => {
    expect(new WindowFeed(aimdLatency({ targetMs: 1, backoffRatio: 0.5 })).play({ ttftMs: 2 })).toBe(10);
  });
});

describe('aimdLatency in front of a server', () => {
  it.each([
    [10, 0.5],
    [50, 0.5],
    [50, 1],
    [50, 1.5],
  ])('uses at least 0.98 of %i slots, where service times spread by %f', (slots, sigma) => {
    const detector = aimdLatency({ targetMs: 2000 });
    const loop = new ClosedLoop({ slots, sigma, detectors: [detector] });
    loop.run(300);
    expect(loop.run(600)).toBeGreaterThan(0.98);
  });

  it('would collapse with a decision for each request', () => {
    const perRequest = { targetMs: 1500, windowMs: 1e-9, minSamples: 1 };
    const loop = new ClosedLoop({ slots: 50, sigma: 0.5, detectors: [aimdLatency(perRequest)] });
    loop.run(300);
    expect(loop.run(600)).toBeLessThan(0.85);
  });

  it('settles at rate times target in flight', () => {
    const detector = aimdLatency({ targetMs: 2000 });
    const loop = new ClosedLoop({ slots: 50, sigma: 0.5, detectors: [detector] });
    loop.run(300);
    const limits = Array.from({ length: 60 }, () => {
      loop.run(10);
      return detector.limit;
    });
    // 50 requests a second in 2 s; the saw's teeth go a good tenth below.
    expect(Math.max(...limits)).toBeLessThan(110);
    expect(mean(limits)).toBeGreaterThan(80);
    expect(mean(limits)).toBeLessThan(100);
  });

  it('gives gateways that share a server equal parts of it, wherever they begin', () => {
    const detectors = [37, 1, 1, 1].map((initialLimit) => aimdLatency({ targetMs: 2000, initialLimit }));
    const loop = new ClosedLoop({ slots: 40, sigma: 0.5, detectors });
    expect(jainIndex(detectors.map(({ limit }) => limit))).toBeLessThan(0.3);
    loop.run(400);
    let shares: number[] = detectors.map(() => 0);
    let used = 0;
    for (let i = 0; i < 40; i++) {
      used += loop.run(10) / 40;
      shares = shares.map((share, at) => share + (detectors[at]?.limit ?? 0));
    }
    expect(jainIndex(shares)).toBeGreaterThan(0.98);
    expect(used).toBeGreaterThan(0.99);
  });

  it('finds the new capacity when the server loses half of its slots', () => {
    const detector = aimdLatency({ targetMs: 2000 });
    const loop = new ClosedLoop({ slots: 50, sigma: 0.5, detectors: [detector] });
    loop.run(300);
    const before = detector.limit;
    loop.resize(25);
    loop.run(60);
    expect(detector.limit).toBeLessThan(0.7 * before);
    expect(loop.run(300)).toBeGreaterThan(0.98);
  });
});
