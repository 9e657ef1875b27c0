import { describe, expect, it, vi } from 'vitest';
import {
  concurrencyDetector,
  interpolatedUsageLimit,
  priorityHoldback,
  staticUsageLimit,
  type UsageLimitPolicy,
} from '../../../src/index.js';
import { key, makeFlow, request } from '../../support/flow.js';

function ceilings(policy: UsageLimitPolicy, priorities: readonly number[]): number[] {
  const found = priorities.map(() => 1);
  policy.computeLimits(0.5, priorities, found);
  return found;
}

describe('priorityHoldback', () => {
  it('falls by equal steps from band to band, or in proportion to the priorities', () => {
    const priorities = [100, 50, 10];
    expect(ceilings(priorityHoldback({ minCeiling: 0.5 }), priorities)).toEqual([1, 0.75, 0.5]);
    const byValue = ceilings(priorityHoldback({ minCeiling: 0.5, domain: 'value' }), priorities);
    expect(byValue[0]).toBe(1);
    expect(byValue[1]).toBeCloseTo(0.7222, 4);
    expect(byValue[2]).toBe(0.5);
  });

  it('gives a single band, and bands of one priority, the highest ceiling', () => {
    for (const domain of ['rank', 'value'] as const) {
      const policy = priorityHoldback({ minCeiling: 0.2, maxCeiling: 0.9, domain });
      expect(ceilings(policy, [])).toEqual([]);
      expect(ceilings(policy, [7])).toEqual([0.9]);
    }
    expect(ceilings(priorityHoldback({ minCeiling: 0.2, domain: 'value' }), [5, 5])).toEqual([1, 1]);
  });

  it('says what is wrong, and that the lowest ceiling is missing', () => {
    expect(() => priorityHoldback({} as { minCeiling: number })).toThrow(
      'priorityHoldback: minCeiling: expected a number from 0 up, below 1 (minCeiling is required); got nothing',
    );
    expect(() => priorityHoldback({ minCeiling: 1 })).toThrow(
      'minCeiling: expected a number from 0 up, below 1; got 1 (number)',
    );
    for (const wrong of [-0.1, '0.5', Number.NaN]) {
      expect(() => priorityHoldback({ minCeiling: wrong as number })).toThrow(
        'minCeiling: expected a number from 0 up, below 1; got',
      );
    }
    expect(() => priorityHoldback({ minCeiling: 0.5, maxCeiling: 0.5 })).toThrow(
      'minCeiling: expected a number below maxCeiling (0.5)',
    );
    expect(() => priorityHoldback({ minCeiling: 0.8, maxCeiling: 0.5 })).toThrow(
      'minCeiling: expected a number below maxCeiling (0.5)',
    );
    expect(() => priorityHoldback({ minCeiling: 0.8, shape: 'cubic' as 'linear' })).toThrow(
      'shape: expected one of "linear"',
    );
  });

  it('closes the lowest band for good at a ceiling of 0', () => {
    expect(ceilings(priorityHoldback({ minCeiling: 0 }), [2, 1, 0])).toEqual([1, 0.5, 0]);
  });

  /** docs/policies/priority-holdback-policy.md */
  it('holds back half of ten seats from the lower of two bands', () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 10 }),
      usageLimitPolicy: priorityHoldback({ minCeiling: 0.5 }),
      bands: [{ priority: 100 }, { priority: 0 }],
    });
    const passed = (priority: number): number => {
      for (let count = 0; ; count++) if (flow.tryEnqueue(request, key('a', priority)) === undefined) return count;
    };
    expect(passed(0)).toBe(5);
    expect(passed(100)).toBe(5);
  });
});

describe('interpolatedUsageLimit', () => {
  it('is rank holdback below a ceiling of 1, and one gate for all at 1', () => {
    const priorities = [4, 3, -1, -2, -3];
    expect(
      ceilings(interpolatedUsageLimit({ threshold: 0.6 }), priorities).map((ceiling) => Number(ceiling.toFixed(9))),
    ).toEqual([1, 0.9, 0.8, 0.7, 0.6]);
    expect(ceilings(interpolatedUsageLimit(), priorities)).toEqual([1, 1, 1, 1, 1]);
    expect(() => interpolatedUsageLimit({ threshold: 0 })).toThrow(
      'interpolatedUsageLimit: threshold: expected a number above 0, at most 1; got 0 (number)',
    );
  });

  /** docs/policies/priority-holdback-policy.md */
  it('lets batch work fill four of five seats', () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 5 }),
      usageLimitPolicy: interpolatedUsageLimit({ threshold: 0.8 }),
      bands: [{ priority: 3 }, { priority: 0 }, { priority: -1 }],
    });
    const passed = (priority: number): number => {
      for (let count = 0; ; count++) if (flow.tryEnqueue(request, key('a', priority)) === undefined) return count;
    };
    expect(passed(-1)).toBe(4);
    expect(passed(0)).toBe(1);
    expect(passed(3)).toBe(0);
  });
});

describe.each([
  ['priorityHoldback', 'priority-holdback-policy', () => priorityHoldback({ minCeiling: 0.5 })],
  ['interpolatedUsageLimit', 'interpolated-usage-limit-policy', () => interpolatedUsageLimit({ threshold: 0.5 })],
  ['staticUsageLimit', 'static-usage-limit-policy', () => staticUsageLimit()],
])('%s', (_name, type, make) => {
  it('is computed when the set of bands changes, and not for every request', () => {
    const usageLimitPolicy = make();
    const computed = vi.spyOn(usageLimitPolicy, 'computeLimits');
    const { flow } = makeFlow({
      saturationDetector: () => 0,
      usageLimitPolicy,
      bands: [{ priority: 1 }, { priority: 0 }],
    });
    for (let i = 0; i < 5; i++) flow.tryEnqueue(request, key());
    expect([usageLimitPolicy.type, computed.mock.calls.length]).toEqual([type, 1]);
    flow.reconfigure({ bands: [{ priority: 2 }] });
    flow.tryEnqueue(request, key());
    expect(computed).toHaveBeenCalledTimes(2);
  });
});
