import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { percentile } from './percentile.js';

describe('percentile', () => {
  it('interpolates between neighbours, in whatever order values come', () => {
    expect(percentile([40, 10, 30, 20], 50)).toBe(25);
    expect(percentile([40, 10, 30, 20], 90)).toBeCloseTo(37, 12);
  });

  it('is the smallest value at 0 and the largest at 100', () => {
    expect([percentile([3, 1, 2], 0), percentile([3, 1, 2], 100)]).toEqual([1, 3]);
  });

  it('sorts numbers as numbers, and leaves the array alone', () => {
    const values = [100, 9, 20];
    expect(percentile(values, 50)).toBe(20);
    expect(values).toEqual([100, 9, 20]);
  });

  it('is 0 of nothing', () => {
    expect([0, 50, 100].map((p) => percentile([], p))).toEqual([0, 0, 0]);
  });

  it('rises with p, and stays among the values', () => {
    const values = fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 1 });
    const p = fc.integer({ min: 0, max: 100 });
    fc.assert(
      fc.property(values, p, p, (list, a, b) => {
        const [low, high] = [percentile(list, Math.min(a, b)), percentile(list, Math.max(a, b))];
        expect(low).toBeLessThanOrEqual(high + 1e-9);
        expect(low).toBeGreaterThanOrEqual(Math.min(...list));
        expect(high).toBeLessThanOrEqual(Math.max(...list) + 1e-9);
      }),
    );
  });

  it.each([-1, 100.1, Number.NaN])('knows no percentile %d', (p) => {
    expect(() => percentile([1], p)).toThrow(FlowConfigError);
  });
});
