import { describe, expect, it } from 'vitest';
import { SeatReserve } from '../../src/gate/seat-reserve.js';

describe('the reserve', () => {
  it('lowers the ceilings of bands below the one that lacked room, by what was evicted for it', () => {
    const reserve = new SeatReserve(1000);
    reserve.add(10, 0.1, 0);
    reserve.add(5, 0.2, 0);
    expect([20, 10, 7, 5, 0].map((priority) => reserve.limit(priority, 1))).toEqual([1, 1, 0.9, 0.9, 0.7]);
  });

  it('leaves each band half of its ceiling', () => {
    const reserve = new SeatReserve(1000);
    for (let i = 0; i < 9; i++) reserve.add(10, 0.25, 0);
    expect([1, 0.5].map((ceiling) => reserve.limit(0, ceiling))).toEqual([0.5, 0.25]);
  });

  it('lasts from each eviction for its time, and says when it next shrinks', () => {
    const reserve = new SeatReserve(1000);
    expect(reserve.shrinksAtMs(0)).toBe(Number.POSITIVE_INFINITY);
    for (const atMs of [0, 0, 400, 900]) reserve.add(10, 0.125, atMs);
    expect([reserve.shrinksAtMs(999), reserve.limit(0, 1)]).toEqual([1000, 0.5]);
    expect([reserve.shrinksAtMs(1000), reserve.limit(0, 1)]).toEqual([1400, 0.75]);
    expect([reserve.shrinksAtMs(1400), reserve.limit(0, 1)]).toEqual([1900, 0.875]);
    reserve.refresh(1899);
    expect(reserve.limit(0, 1)).toBe(0.875);
    reserve.refresh(5000);
    expect([reserve.limit(0, 1), reserve.shrinksAtMs(5000)]).toEqual([1, Number.POSITIVE_INFINITY]);
  });

  it('goes by another time as soon as it is given one', () => {
    const reserve = new SeatReserve(1000);
    reserve.add(10, 0.1, 0);
    reserve.windowMs = 50;
    reserve.refresh(50);
    expect(reserve.limit(0, 1)).toBe(1);
  });
});
