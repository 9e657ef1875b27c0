import { describe, expect, it } from 'vitest';
import { type Distribution, randomStreams, samplerOf } from '../../../src/simulator/random/distributions.js';
import { type Rate, RateWalk } from '../../../src/simulator/random/rate-profile.js';

const random = () => randomStreams(1)('test');

describe('a distribution', () => {
  it.each<[Distribution, number, number]>([
    [{ type: 'exponential', mean: 20 }, 20, 20],
    [{ type: 'uniform', from: 10, to: 30 }, 20, 20 / Math.sqrt(12)],
    [{ type: 'lognormal', mean: 20, sigma: 0.5 }, 20, 20 * Math.sqrt(Math.exp(0.25) - 1)],
    [{ type: 'gamma', mean: 20, cv: 2 }, 20, 40],
    [{ type: 'gamma', mean: 20, cv: 0.5 }, 20, 10],
    [{ type: 'values', values: [10, 40], weights: [2, 1] }, 20, Math.sqrt(200)],
  ])('%j has its mean and its spread', (given, mean, deviation) => {
    const draw = samplerOf(given, random());
    const drawn = Array.from({ length: 200_000 }, draw);
    const found = drawn.reduce((sum, value) => sum + value, 0) / drawn.length;
    const spread = Math.sqrt(drawn.reduce((sum, value) => sum + (value - found) ** 2, 0) / drawn.length);
    expect(Math.abs(found / mean - 1)).toBeLessThan(0.02);
    expect(Math.abs(spread / deviation - 1)).toBeLessThan(0.04);
  });

  it('in sequence begins again', () => {
    const draw = samplerOf({ type: 'sequence', values: [1, 2, 3] }, random());
    expect(Array.from({ length: 5 }, draw)).toEqual([1, 2, 3, 1, 2]);
  });
});

describe('a rate over time', () => {
  const arrivals = (rate: Rate, untilMs: number): number => {
    const walk = new RateWalk(rate);
    let count = 0;
    while (walk.advance(1) <= untilMs) count++;
    return count;
  };

  it.each<[Rate, number, number]>([
    [10, 60_000, 600],
    [{ type: 'ramp', from: 0, to: 10, over: 60_000 }, 120_000, 900],
    [{ type: 'on-off', high: 10, low: 1, on: 10_000, off: 20_000 }, 60_000, 240],
    [{ type: 'on-off', high: 10, on: 10_000, off: 20_000 }, 60_000, 200],
    [{ type: 'daily', low: 0, high: 10, period: 60_000 }, 60_000, 300],
    [
      {
        type: 'steps',
        steps: [
          { at: 10_000, rate: 2 },
          { at: 20_000, rate: 0 },
          { at: 50_000, rate: 3 },
        ],
      },
      60_000,
      50,
    ],
  ])('%j brings the area under it', (rate, untilMs, count) => {
    expect(Math.abs(arrivals(rate, untilMs) - count)).toBeLessThanOrEqual(1);
  });

  it('of 0 brings nothing', () => {
    expect(new RateWalk(0).advance(1)).toBe(Number.POSITIVE_INFINITY);
  });
});
