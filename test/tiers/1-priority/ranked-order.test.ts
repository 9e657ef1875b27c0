import { describe, expect, it } from 'vitest';
import type { BandOrderPolicy } from '../../../src/tiers/1-priority/band-order-policy.js';
import { rankedOrder } from '../../../src/tiers/1-priority/ranked-order.js';
import type { PriorityBand } from '../../../src/tiers/priority-band.js';

const open = [
  { priority: 10, ceiling: 0.9 },
  { priority: 0, ceiling: 0.8 },
  { priority: -5, ceiling: 0.7 },
] as unknown as PriorityBand[];

/** The order of a policy whose faults are kept. */
function make(policy: Partial<BandOrderPolicy> | { rank: unknown; recordDispatch?: unknown }) {
  const faults: string[] = [];
  const order = rankedOrder({ type: 'x', ...policy } as BandOrderPolicy);
  order.reportTo?.({ pluginFailed: (kind, type, error) => void faults.push(`${kind} ${type}: ${String(error)}`) });
  const first = (bands = open): number => order.choose(bands, bands, 0.5).priority;
  return { order, faults, first };
}

/** Leaves these places in the order that it was given. */
const ranking = (...places: unknown[]) => ({
  rank: (_saturation: number, _priorities: readonly number[], _ceilings: readonly number[], order: unknown[]): void =>
    void order.splice(0, order.length, ...places),
});

describe('a policy that ranks bands', () => {
  it('is told how full the pool is, the priorities, the ceilings and the order as it stands', () => {
    const told: unknown[] = [];
    const { first, faults } = make({ rank: (...given: unknown[]) => void told.push(structuredClone(given)) });
    expect(first()).toBe(10);
    expect([told, faults]).toEqual([[[0.5, [10, 0, -5], [0.9, 0.8, 0.7], [0, 1, 2]]], []]);
  });

  it('has the band go that it puts first', () => {
    expect(make(ranking(2, 0, 1)).first()).toBe(-5);
    expect(make(ranking(1, 2, 0)).first()).toBe(0);
  });

  it('is not asked about a single band', () => {
    const { first, faults } = make({
      rank: () => {
        throw new Error('asked');
      },
    });
    expect([first(open.slice(1, 2)), faults]).toEqual([0, []]);
  });

  it.each([
    ['a place that is none', [1, 3, 0], 'rank must leave a permutation in the order that it was given; got 3'],
    ['a place as text', ['1', 0, 2], 'rank must leave a permutation in the order that it was given; got 1'],
    ['a place twice', [1, 1, 0], 'rank must leave each place in the order once; got 1, 1, 0'],
    ['too few places', [1, 0], 'rank must leave each place in the order once; got 1, 0'],
    ['too many places', [1, 0, 2, 2], 'rank must leave each place in the order once; got 1, 0, 2, 2'],
  ])('leaves the choice to the highest band when it names %s, which is told once', (_fault, places, told) => {
    const { first, faults } = make(ranking(...places));
    expect(first()).toBe(10);
    expect(faults).toEqual([`bandOrder x: TypeError: ${told}`]);
  });

  it('leaves the choice to the highest band when it throws', () => {
    const { first, faults } = make({
      rank() {
        throw new Error('broken');
      },
    });
    expect([first(), faults]).toEqual([10, ['bandOrder x: Error: broken']]);
  });

  it('is heard when it answers a promise that is rejected', async () => {
    const { order, first, faults } = make({
      rank: () => Promise.reject(new Error('late')),
      recordDispatch: () => Promise.reject(new Error('later')),
    });
    expect(first()).toBe(10);
    order.dispatched?.(10);
    await new Promise(setImmediate);
    expect(faults).toEqual(['bandOrder x: Error: late', 'bandOrder x: Error: later']);
  });

  it.each([[undefined], [Promise.resolve()]])('answers nothing, or %s, without a remark', async (answer) => {
    const { order, first, faults } = make({ rank: () => answer, recordDispatch: () => answer });
    first();
    order.dispatched?.(10);
    await new Promise(setImmediate);
    expect(faults).toEqual([]);
  });
});

it('a policy that ranks bands outside of a controller decides as inside, and its faults go nowhere', () => {
  const broken = rankedOrder({
    type: 'x',
    rank() {
      throw new Error('broken');
    },
    recordDispatch() {
      throw new Error('broken');
    },
  });
  expect(broken.choose(open, open, 0.5).priority).toBe(10);
  expect(() => broken.dispatched?.(10)).not.toThrow();
  expect([
    broken.hearsDispatches,
    rankedOrder({ type: 'x', ...ranking(2, 1, 0) }).choose(open, open, 0).priority,
  ]).toEqual([true, -5]);
});

describe('the dispatches that a policy hears of', () => {
  it('are told by their priorities', () => {
    const told: number[] = [];
    const { order } = make({ ...ranking(0, 1, 2), recordDispatch: (priority: number) => void told.push(priority) });
    order.dispatched?.(-5);
    expect([order.hearsDispatches, told]).toEqual([true, [-5]]);
  });

  it('are none where it has no hook, which is no fault', () => {
    const { order, faults } = make(ranking(0, 1, 2));
    order.dispatched?.(-5);
    expect([order.hearsDispatches, order.needsOldest, faults]).toEqual([false, false, []]);
  });

  it('go no further when the hook throws', () => {
    const { order, faults } = make({
      ...ranking(0, 1, 2),
      recordDispatch() {
        throw new Error('broken');
      },
    });
    order.dispatched?.(0);
    expect(faults).toEqual(['bandOrder x: Error: broken']);
  });
});
