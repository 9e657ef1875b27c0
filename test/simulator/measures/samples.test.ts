import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { Samples } from '../../../src/simulator/measures/samples.js';

describe('Samples', () => {
  it('gives exact order statistics', () => {
    const samples = new Samples();
    for (let value = 1000; value >= 1; value--) samples.add(value);
    expect(samples.figures()).toMatchObject({
      count: 1000,
      meanMs: 500.5,
      p50Ms: 500,
      p95Ms: 950,
      p99Ms: 990,
      maxMs: 1000,
      isExact: true,
    });
  });

  it('stays within 0.1 % where there are too many to keep', () => {
    const random = seededRandom(1);
    const samples = new Samples();
    const all = Array.from({ length: 300_000 }, () => -Math.log(1 - random()) * 100);
    for (const value of all) samples.add(value);
    all.sort((a, b) => a - b);
    expect(samples.figures().isExact).toBe(false);
    expect(samples.count).toBe(300_000);
    expect(samples.figures().meanMs).toBeCloseTo(all.reduce((sum, value) => sum + value, 0) / all.length, 6);
    for (const percent of [50, 95, 99]) {
      expect(
        Math.abs(samples.percentile(percent) / all[Math.ceil((percent / 100) * all.length) - 1]! - 1),
      ).toBeLessThan(0.001);
    }
  });

  it('has no figures of nobody', () => {
    const { count, isExact, ...figures } = new Samples().figures();
    expect({ count, isExact }).toEqual({ count: 0, isExact: true });
    expect(figures).toEqual({
      meanMs: Number.NaN,
      p50Ms: Number.NaN,
      p95Ms: Number.NaN,
      p99Ms: Number.NaN,
      maxMs: Number.NaN,
    });
  });
});
