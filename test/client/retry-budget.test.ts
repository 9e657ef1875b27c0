import { describe, expect, it } from 'vitest';
import { retryBudget } from '../../src/client/index.js';
import { FlowConfigError } from '../../src/index.js';

/** How many retries it gives at one instant. */
function drain(budget: ReturnType<typeof retryBudget>, nowMs: number): number {
  let retries = 0;
  while (retries < 1000 && budget.tryRetry(nowMs)) retries++;
  return retries;
}

describe('retryBudget', () => {
  it('starts full', () => {
    expect(drain(retryBudget(), 0)).toBe(10);
    expect(drain(retryBudget({ capacity: 3 }), 5)).toBe(3);
  });

  it('gives one retry for ten requests', () => {
    const budget = retryBudget({ minPerSecond: 0 });
    drain(budget, 0);
    for (let i = 0; i < 9; i++) budget.requested();
    expect(drain(budget, 1e6)).toBe(0);
    budget.requested();
    expect(drain(budget, 2e6)).toBe(1);
  });

  it('gives a retry a second to a client with few requests', () => {
    const budget = retryBudget({ ratio: 0 });
    drain(budget, 1000);
    expect([drain(budget, 1999), drain(budget, 2000), drain(budget, 5500), drain(budget, 6000)]).toEqual([0, 1, 3, 1]);
  });

  it('saves no more than its capacity', () => {
    const budget = retryBudget({ capacity: 2 });
    drain(budget, 0);
    for (let i = 0; i < 1000; i++) budget.requested();
    expect(drain(budget, 1e9)).toBe(2);
  });

  it('does not fall for a clock that stands or runs back', () => {
    const budget = retryBudget({ ratio: 0, capacity: 1 });
    expect([budget.tryRetry(5000), budget.tryRetry(5000), budget.tryRetry(0)]).toEqual([true, false, false]);
    expect([budget.tryRetry(999), budget.tryRetry(1000)]).toEqual([false, true]);
  });

  it('bounds retries over every span of an overload in which everything is refused and retried', () => {
    const budget = retryBudget();
    let retries = 0;
    for (let ms = 0; ms < 20_000; ms += 10) {
      budget.requested();
      retries += drain(budget, ms);
    }
    expect(retries).toBeGreaterThan(200);
    expect(retries).toBeLessThanOrEqual(10 + 0.1 * 2000 + 20);
  });

  it.each([
    { ratio: -1 },
    { minPerSecond: Number.NaN },
    { minPerSecond: Number.POSITIVE_INFINITY },
    { capacity: 0 },
    { capacity: '10' },
    { percent: 10 },
  ])('is not made of %j', (options) => {
    expect(() => retryBudget(options as never)).toThrow(FlowConfigError);
  });
});
