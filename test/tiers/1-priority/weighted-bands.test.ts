import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FlowConfigError, FlowController, weightedBands } from '../../../src/index.js';
import type { BandOrderPolicy } from '../../../src/tiers/1-priority/band-order-policy.js';
import { Rig } from '../../conformance/support/rig.js';
import { dial, key, request } from '../../support/flow.js';

/** Dispatches of bands that all have `count` requests waiting, as text. */
function order(rig: Rig, count: number): string {
  rig.dispatched.length = 0;
  rig.gate.open(count);
  return rig.dispatched.map(({ lease }) => lease?.priority).join(' ');
}

function busy(weights: Record<string, number> | undefined, priorities: readonly number[]): Rig {
  const rig = new Rig({ bandOrder: weightedBands({ weights }) });
  for (const priority of priorities) rig.enqueueMany(100, { priority });
  return rig;
}

describe('weightedBands', () => {
  it('serves each band by its weight, the highest first in each round', () => {
    const rig = busy({ 10: 2, 0: 1 }, [0, 10]);
    expect(order(rig, 7)).toBe('10 10 0 10 10 0 10');
  });

  it('gives a band without a weight of its own one turn', () => {
    expect(order(busy({ 10: 2 }, [10, 5, 0]), 8)).toBe('10 10 5 0 10 10 5 0');
  });

  it('weighs bands by the distance from the lowest that competes, where no weights are given', () => {
    expect(order(busy(undefined, [-1, -3, 0]), 8)).toBe('0 0 0 0 -1 -1 -1 -3');
  });

  it('begins another round as soon as those that have turns left have nothing waiting', () => {
    const rig = new Rig({ bandOrder: weightedBands({ weights: { 10: 5, 0: 1 } }) });
    rig.enqueueMany(2, { priority: 10 });
    rig.enqueueMany(4, { priority: 0 });
    expect(order(rig, 6)).toBe('10 10 0 0 0 0');
  });

  it('holds back nothing: a band that is alone goes as ever', () => {
    const rig = busy({ 0: 1 }, [0]);
    expect(order(rig, 3)).toBe('0 0 0');
  });

  it('does not let what passed in calm weigh for longer than a round', () => {
    const rig = new Rig({ bandOrder: weightedBands({ weights: { 10: 2, 0: 1 } }) });
    rig.gate.open(50);
    rig.enqueueMany(50, { priority: 10 });
    rig.gate.close();
    rig.enqueueMany(10, { priority: 10 });
    rig.enqueueMany(10, { priority: 0 });
    expect(order(rig, 7)).toBe('0 10 10 0 10 10 0');
  });

  it('keeps shares in proportion to the weights, whatever they are, while all bands wait', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 2, maxLength: 4 }),
        fc.integer({ min: 1, max: 4 }),
        (given, rounds) => {
          const weights = Object.fromEntries(given.map((weight, priority) => [priority, weight]));
          const rig = busy(weights, [...given.keys()]);
          const round = given.reduce((sum, weight) => sum + weight, 0);
          order(rig, round * rounds);
          for (const [priority, weight] of given.entries()) {
            expect(rig.dispatched.filter(({ lease }) => lease?.priority === priority)).toHaveLength(weight * rounds);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('leaves first turns to bands that are due by minShare', () => {
    const rig = new Rig({
      bandOrder: weightedBands({ weights: { 10: 9, 0: 1 } }),
      bands: [{ priority: 10 }, { priority: 0, minShare: 0.5 }],
    });
    rig.enqueueMany(50, { priority: 10 });
    rig.enqueueMany(50, { priority: 0 });
    order(rig, 20);
    expect(rig.dispatched.filter(({ lease }) => lease?.priority === 0).length).toBeGreaterThanOrEqual(9);
  });

  it('says what is wrong with weights', () => {
    const wrong = (weights: unknown) => () => weightedBands({ weights: weights as never });
    expect(wrong({ 10: 0 })).toThrow(FlowConfigError);
    expect(wrong({ 10: 0 })).toThrow(/weights\.10|weights\["10"\]/);
    for (const name of ['high', '1.5', '01', '1e3', '9007199254740993', '']) {
      expect(wrong({ [name]: 2 })).toThrow(/^weightedBands: weights[^:]+: expected a priority, which is an integer/);
      expect(wrong({ [name]: 2 })).toThrow(`got ${JSON.stringify(name)}`);
    }
    expect(wrong({ '-3': 2, 0: 1 })).not.toThrow();
    expect(wrong(7)).toThrow(FlowConfigError);
  });
});

describe('a round of weightedBands', () => {
  /** Lets the band go that the policy puts first. */
  function dispatch(policy: BandOrderPolicy, priorities: readonly number[]): number {
    const order = [...priorities.keys()];
    policy.rank(
      1,
      priorities,
      priorities.map(() => 1),
      order,
    );
    const priority = priorities[order[0] as number] as number;
    policy.recordDispatch?.(priority);
    return priority;
  }

  const dispatches = (policy: BandOrderPolicy, count: number, ...priorities: number[]): number[] =>
    Array.from({ length: count }, () => dispatch(policy, priorities));

  it('weighs by the lowest band that competed in it, also when that leaves', () => {
    const policy = weightedBands();
    expect(dispatches(policy, 6, 2, 1, 0)).toEqual([2, 2, 2, 1, 1, 0]);
    expect(dispatches(policy, 1, 2, 1, 0)).toEqual([2]);
    expect(dispatches(policy, 4, 2, 1)).toEqual([2, 2, 1, 1]);
    // Now a round begins in which the lowest is 1.
    expect(dispatches(policy, 4, 2, 1)).toEqual([2, 2, 1, 2]);
  });

  it('puts those that have turns left before the others, both by priority', () => {
    const policy = weightedBands({ weights: { 3: 1, 2: 5, 1: 1, 0: 5 } });
    for (const priority of [3, 1]) policy.recordDispatch?.(priority);
    const order = [0, 1, 2, 3];
    policy.rank(1, [3, 2, 1, 0], [1, 1, 1, 1], order);
    expect(order).toEqual([1, 3, 0, 2]);
  });

  it('ends when more than 1024 priorities were counted in it', () => {
    const policy = weightedBands({ weights: {} });
    policy.recordDispatch?.(10);
    for (let priority = 1001; priority <= 2023; priority++) policy.recordDispatch?.(priority);
    const order = (): number[] => {
      const places = [0, 1];
      policy.rank(1, [10, 0], [1, 1], places);
      return places;
    };
    expect(order()).toEqual([1, 0]);
    policy.recordDispatch?.(2024);
    expect(order()).toEqual([0, 1]);
  });
});

describe('an order of bands that is a plugin', () => {
  const lowestFirst = {
    type: 'lowest-first',
    rank(_saturation: number, _priorities: readonly number[], _ceilings: readonly number[], places: number[]): void {
      places.reverse();
    },
  };

  it('is given what competes, with the saturation and the ceilings', async () => {
    const gate = dial(1);
    const seen: unknown[] = [];
    const bandOrder = {
      type: 'spy',
      rank: (...given: unknown[]): void => void seen.push(structuredClone(given)),
    };
    const flow = new FlowController({ saturationDetector: gate, bandOrder, bands: [{ priority: 5 }] });
    for (const priority of [0, 5, 10]) void flow.enqueue(request, key('a', priority));
    gate.turnTo(0.25);
    flow.reconfigure({});
    expect(seen[0]).toEqual([0.25, [10, 5, 0], [1, 1, 1], [0, 1, 2]]);
    expect(seen).toHaveLength(2);
    await flow.close();
  });

  it('replaces another order at run time, also for what waits already', () => {
    const rig = busy({ 10: 1, 0: 1 }, [10, 0]);
    expect(order(rig, 2)).toBe('10 0');
    rig.flow.reconfigure({ bandOrder: lowestFirst });
    expect(order(rig, 3)).toBe('0 0 0');
    rig.flow.reconfigure({ bandOrder: 'strict' });
    expect(order(rig, 2)).toBe('10 10');
  });

  it('hears of dispatches alone, also of those that need not wait', () => {
    const heard: number[] = [];
    const rig = new Rig({ bandOrder: { ...lowestFirst, recordDispatch: (priority) => void heard.push(priority) } });
    rig.gate.open(1);
    rig.enqueue({ priority: 7 });
    const gone = rig.enqueue({ priority: 3 });
    gone.abort.abort();
    rig.enqueueMany(1, { priority: 2 });
    rig.gate.open(1);
    expect(heard).toEqual([7, 2]);
  });

  it('costs nothing where it is strict: it is not asked', () => {
    let asked = 0;
    const rig = new Rig({
      bandOrder: { type: 'strict', strict: true, rank: () => void asked++, recordDispatch: () => void asked++ },
    });
    rig.enqueueMany(3, { priority: 0 });
    rig.enqueueMany(3, { priority: 10 });
    expect(order(rig, 6)).toBe('10 10 10 0 0 0');
    expect(asked).toBe(0);
  });

  it.each<[string, (places: number[]) => void, string]>([
    ['names what is not there', (places) => void places.splice(0, 1, 99), 'rank must leave a permutation'],
    ['names one twice', (places) => void places.fill(1), 'rank must leave each place in the order once'],
    ['leaves one out', (places) => void places.shift(), 'rank must leave each place in the order once'],
  ])('leaves the highest band first, and tells of it, where the order %s', (_, spoil, told) => {
    const faults: unknown[] = [];
    const rig = new Rig({
      bandOrder: { type: 'broken', rank: (_saturation, _priorities, _ceilings, places) => spoil(places) },
    });
    rig.flow.on('pluginError', ({ kind, type, error }) => faults.push([kind, type, String(error)]));
    rig.enqueueMany(1, { priority: 0 });
    rig.enqueueMany(2, { priority: 10 });
    expect(order(rig, 3)).toBe('10 10 0');
    expect(faults[0]).toEqual(['bandOrder', 'broken', expect.stringContaining(told)]);
  });

  it('is rejected where it is no policy', () => {
    expect(() => new Rig({ bandOrder: { type: 'x' } as never })).toThrow(/bandOrder\.rank/);
    expect(() => new Rig({ bandOrder: 'weighted' as never })).toThrow(
      /band selection policy, such as weightedBands\(\)/,
    );
  });
});
