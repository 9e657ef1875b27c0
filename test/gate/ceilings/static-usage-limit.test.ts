import { describe, expect, it } from 'vitest';
import { FlowConfigError, staticUsageLimit } from '../../../src/index.js';

describe('staticUsageLimit', () => {
  it.each([
    [undefined, 1],
    [0.5, 0.5],
    [2, 2],
  ])('with threshold %s sets every ceiling to %d', (threshold, expected) => {
    const ceilings = [1, 1, 1];
    staticUsageLimit({ threshold }).computeLimits(0.7, [2, 1, 0], ceilings);
    expect(ceilings).toEqual([expected, expected, expected]);
  });

  it.each([[0], [-1], [Number.NaN], [Number.POSITIVE_INFINITY], ['1']])('rejects threshold %s', (threshold) => {
    const make = (): unknown => staticUsageLimit({ threshold: threshold as number });
    expect(make).toThrow(FlowConfigError);
    expect(make).toThrow(/^staticUsageLimit: threshold: expected a number above 0; got/);
  });
});
