import { describe, expect, it } from 'vitest';
import { LowQuantile } from '../../../src/tiers/3-ordering/low-quantile.js';

function filled(durations: Iterable<number>): LowQuantile {
  const quantile = new LowQuantile();
  for (const durationMs of durations) quantile.add(durationMs);
  return quantile;
}

/** `count` numbers from `from` up. */
function range(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => from + i);
}

describe('LowQuantile', () => {
  it('is 0 until enough is known, then the first decile of the latest hundred', () => {
    const quantile = filled(range(1, 19));
    expect(quantile.value).toBe(0);
    quantile.add(20);
    expect(quantile.value).toBe(3);
    for (const durationMs of range(1000, 100)) quantile.add(durationMs);
    expect(quantile.value).toBe(1010);
  });

  it('orders durations as numbers, whatever the order in which they come', () => {
    expect(filled(range(1, 50).reverse()).value).toBe(6);
    expect(filled([...range(90, 20), ...range(5, 10)]).value).toBe(8);
  });

  it('looks again after every tenth duration, not after each', () => {
    const quantile = filled(range(100, 20));
    expect(quantile.value).toBe(102);
    for (let i = 0; i < 9; i++) {
      quantile.add(1);
      expect(quantile.value).toBe(102);
    }
    quantile.add(1);
    expect(quantile.value).toBe(1);
  });

  it('forgets what is older than the latest hundred, one by one', () => {
    const quantile = filled([...range(1, 10), ...range(1000, 90)]);
    expect(quantile.value).toBe(1000);
    const later = filled([...range(1, 11), ...range(1000, 89)]);
    expect(later.value).toBe(11);
    for (let i = 0; i < 10; i++) later.add(5000);
    expect(later.value).toBe(1009);
  });
});
