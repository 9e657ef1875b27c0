import { describe, expect, it } from 'vitest';
import { agingOrder, fifoOrder, strictOrder } from '../../../src/tiers/1-priority/band-order.js';
import type { PriorityBand } from '../../../src/tiers/priority-band.js';

/** A band whose oldest request has this arrival number and came at this instant. */
function band(priority: number, sequence: number, enqueuedAtMs = 0): PriorityBand {
  return { priority, arrivals: { peek: () => ({ sequence, enqueuedAtMs }) } } as unknown as PriorityBand;
}

const choice = (order: typeof fifoOrder, open: readonly PriorityBand[], all = open): number =>
  order.choose(open, all, 0).priority;

describe('which of the open bands goes', () => {
  it('strictly: the highest', () => {
    expect(choice(strictOrder, [band(9, 5), band(0, 1)])).toBe(9);
  });

  it.each([
    [[3, 1, 2], 5],
    [[1, 2, 3], 9],
    [[3, 2, 1], 0],
  ])('first come, first served: arrivals %j leave it to priority %d', ([a = 0, b = 0, c = 0], expected) => {
    expect(choice(fifoOrder, [band(9, a), band(5, b), band(0, c)])).toBe(expected);
  });

  it('aging: a band more is worth promotionMs of waiting, counted from the lowest of all bands', () => {
    const order = agingOrder(1000);
    expect(choice(order, [band(9, 2, 999), band(0, 1, 0)])).toBe(9);
    expect(choice(order, [band(9, 2, 1001), band(0, 1, 0)])).toBe(0);
    const all = [band(9, 9), band(5, 8), band(0, 1)];
    expect(choice(order, [band(9, 2, 1999), band(0, 1, 0)], all)).toBe(9);
    expect(choice(order, [band(9, 2, 2001), band(0, 1, 0)], all)).toBe(0);
  });

  it('aging: of equals the one that came first, wherever it stands', () => {
    const order = agingOrder(1000);
    expect(choice(order, [band(9, 2, 1000), band(0, 1, 0)])).toBe(0);
    expect(choice(order, [band(9, 1, 1000), band(0, 2, 0)])).toBe(9);
  });

  it('bands must know their oldest request, unless the order is strict', () => {
    const orders = [agingOrder(1000), agingOrder(0), fifoOrder, strictOrder];
    expect(orders.map(({ needsOldest }) => needsOldest)).toEqual([true, true, true, false]);
  });

  it('aging without end is strict, also among bands that are not the lowest', () => {
    const order = agingOrder(Number.POSITIVE_INFINITY);
    expect(choice(order, [band(9, 3, 1e9), band(5, 2, 10), band(0, 1, 0)])).toBe(9);
    expect(choice(order, [band(5, 2, 10), band(0, 1, 0)], [band(9, 3), band(5, 2), band(0, 1)])).toBe(5);
    expect(choice(order, [band(0, 1, 0)], [band(9, 2), band(0, 1, 0)])).toBe(0);
  });
});
