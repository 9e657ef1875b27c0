import { describe, expect, it } from 'vitest';
import { jainIndex } from '../../src/base/jain-index.js';

describe('jainIndex', () => {
  it('is 1 for equal values and 1/n when one has everything', () => {
    expect(jainIndex([5, 5, 5, 5])).toBe(1);
    expect(jainIndex([0.1, 0.1, 0.1])).toBe(1);
    expect(jainIndex([1, 0, 0, 0])).toBe(0.25);
  });

  it('lies between for the rest', () => {
    expect(jainIndex([1, 2, 3])).toBeCloseTo(6 / 7, 12);
    expect(jainIndex([10, 30])).toBeCloseTo(0.8, 12);
  });

  it('is 1 where nothing is shared', () => {
    for (const values of [[], [0], [7], [0, 0, 0]]) expect(jainIndex(values)).toBe(1);
  });

  it('does not depend on the scale, however large or small', () => {
    for (const scale of [1e-200, 1, 1e200]) expect(jainIndex([10 * scale, 30 * scale])).toBeCloseTo(0.8, 12);
  });
});
