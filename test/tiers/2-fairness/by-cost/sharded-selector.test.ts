import { describe, expect, it } from 'vitest';
import { shuffleSharded } from '../../../../src/index.js';
import type { FlowSelector } from '../../../../src/tiers/2-fairness/fairness-policy.js';
import type { ItemView } from '../../../../src/tiers/views.js';
import { byPrompt } from './backlogged.js';
import { FakeBand, FakeFlow, shardedOf, usage } from './fake-band.js';

/**
 * Queues all of which are in every hand; `loads`, `charges` and `counters` are in the order of the hand of tenant a.
 */
function make(queues: number, options: Parameters<typeof shuffleSharded>[0] = {}) {
  const band = new FakeBand(shuffleSharded({ ...byPrompt, queues, handSize: queues, ...options }));
  const inside = shardedOf(band);
  const hand = inside.handOf(new FakeFlow('a', 1));
  const figures = (figure: 'received' | 'counter'): number[] => {
    const known = new Map(Array.from(inside.tree.shares(), (share) => [share.name, share[figure]]));
    return hand.map((card) => known.get(String(card)) ?? 0);
  };
  return {
    ...{ band, inside, selector: band.selector },
    loads: () => hand.map((card) => [inside.shards[card]?.work, inside.shards[card]?.places]),
    charges: () => figures('received'),
    counters: () => figures('counter'),
    serveAll: () => {
      const order: number[] = [];
      for (let served = band.serve(); served !== undefined; served = band.serve()) order.push(served.item.sequence);
      return order;
    },
  };
}

/** As a controller does that lets a flow go without asking. */
function dispatch(selector: FlowSelector, band: FakeBand, fairnessId: string): void {
  const flow = band.flow(fairnessId);
  const item = flow.queue.shift() as ItemView;
  if (flow.waiting === 0) selector.flowDeactivated?.(flow);
  selector.dispatched?.(flow, item, 0);
}

describe('queues of a hand', () => {
  it('take turns while they are equally loaded, also for requests that never wait', () => {
    const { band, charges, loads } = make(3);
    for (let i = 0; i < 4; i++) band.pass('a', { tokens: 10 });
    expect(charges()).toEqual([20, 10, 10]);
    for (let i = 0; i < 3; i++) band.add('a', { tokens: 5 });
    expect(loads()).toEqual([
      [5, 1],
      [5, 1],
      [5, 1],
    ]);
  });

  it('go in the order of arrival where they have received alike', () => {
    const { band, serveAll } = make(4);
    for (let i = 0; i < 12; i++) band.add(`tenant ${i % 5}`, { tokens: 10 });
    expect(serveAll()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it('are empty when what waited has left, to the last fraction of its work', () => {
    const { band, loads, inside, selector } = make(1);
    for (const tokens of [0.1, 0.2, 0.3]) band.add('a', { tokens });
    expect(loads()[0]?.[1]).toBe(3);
    for (let i = 0; i < 2; i++) band.cancel('a', 0);
    expect(loads()[0]?.[0]).toBeCloseTo(0.3);
    band.cancel('a', 0);
    expect([loads(), inside.flows.size, selector.pick(0)]).toEqual([[[0, 0]], 0, undefined]);
    expect(Array.from(inside.tree.shares(), ({ isActive }) => isActive)).not.toContain(true);
  });

  it('let others go when a cancelled request stood first', () => {
    const { band, serveAll } = make(1);
    for (const name of ['a', 'b', 'c']) band.add(name, { tokens: 10 });
    band.cancel('a', 0);
    expect(serveAll()).toEqual([1, 2]);
  });

  it('stand among equals by the request that is first in them now', () => {
    const { band, loads, serveAll } = make(2);
    for (const name of ['a', 'b', 'c', 'd']) band.add(name, { tokens: 10 });
    band.cancel('a', 0);
    // What came last stands behind the one that left, and the other two in the other queue.
    expect(loads().map(([, places]) => places)).toEqual([1, 2]);
    expect(serveAll()).toEqual([1, 3, 2]);
  });

  it('stand among equals by a request that was put back in front, too', () => {
    const { band, loads, serveAll } = make(2);
    for (const name of ['a', 'b', 'c', 'd']) band.add(name, { tokens: 10 });
    const first = band.serve();
    if (first === undefined) throw new Error('nothing was served');
    expect(loads().map(([, places]) => places)).toEqual([1, 2]);
    band.requeue(first, usage(0));
    expect(loads().map(([, places]) => places)).toEqual([2, 2]);
    expect(serveAll()).toEqual([0, 1, 2, 3]);
  });

  it('put a request that waits once more back into its place', () => {
    const { band, serveAll } = make(1);
    for (const name of ['a', 'b', 'c']) band.add(name, { tokens: 10 });
    const first = band.serve();
    if (first === undefined) throw new Error('nothing was served');
    band.requeue(first, usage(0));
    expect(serveAll()).toEqual([0, 1, 2]);
  });
});

describe('a queue that is behind', () => {
  /** The second queue has received 110, when it was picked at 100; the first one 20. */
  function behind() {
    const made = make(2);
    for (const tokens of [10, 100]) made.band.add('a', { tokens });
    made.serveAll();
    for (let i = 0; i < 2; i++) made.band.add('a', { tokens: 10 });
    made.serveAll();
    expect(made.counters()).toEqual([20, 110]);
    return made;
  }

  it('is lifted when something comes to wait in it', () => {
    const { band, counters } = behind();
    band.add('a', { tokens: 5 });
    expect(counters()).toEqual([100, 110]);
  });

  it('is lifted by a request that never waits', () => {
    const { band, counters } = behind();
    band.pass('a', { tokens: 5 });
    expect(counters()).toEqual([105, 110]);
  });

  it('is not lifted by its last request, which had waited', () => {
    const { band, counters } = make(2);
    for (let i = 0; i < 2; i++) band.add('a', { tokens: 100 });
    const [first] = [band.serve(), band.serve()];
    if (first === undefined) throw new Error('nothing was served');
    band.add('a', { tokens: 10 });
    band.serve();
    for (let i = 0; i < 2; i++) band.add('a', { tokens: 10 });
    expect(counters()).toEqual([110, 100]);
    band.settle(first, usage(40));
    band.serve();
    expect(counters()).toEqual([60, 100]);
  });
});

describe('a flow that is held back', () => {
  it('has nothing in the queues, also of what comes meanwhile, until it is let out', () => {
    const { band, loads, selector, serveAll } = make(2);
    for (let i = 0; i < 3; i++) band.add('a', { tokens: 10 });
    band.hold('a');
    band.add('a', { tokens: 10 });
    expect([loads(), selector.pick(0)]).toEqual([
      [
        [0, 0],
        [0, 0],
      ],
      undefined,
    ]);
    band.releaseHeld('a');
    expect(loads()).toEqual([
      [20, 2],
      [20, 2],
    ]);
    expect(serveAll()).toEqual([0, 1, 2, 3]);
    band.add('a', { tokens: 10 });
    expect(serveAll()).toEqual([4]);
  });

  it('stands in the queues with what comes after it was let out', () => {
    const { band, loads } = make(1);
    band.add('a', { tokens: 10 });
    band.hold('a');
    band.releaseHeld('a');
    band.add('a', { tokens: 5 });
    expect(loads()).toEqual([[15, 2]]);
  });

  it('does not stand in the way of others', () => {
    const { band, serveAll } = make(1);
    for (const name of ['a', 'b', 'a', 'c']) band.add(name, { tokens: 10 });
    band.hold('a');
    expect(serveAll()).toEqual([1, 3]);
    band.releaseHeld('a');
    expect(serveAll()).toEqual([0, 2]);
  });

  it('is forgotten with its last request, and begins anew with the next', () => {
    const { band, loads, inside, serveAll } = make(1);
    for (let i = 0; i < 2; i++) band.add('a', { tokens: 10 });
    band.hold('a');
    for (let i = 0; i < 2; i++) band.cancel('a', 0);
    expect([loads(), inside.flows.size]).toEqual([[[0, 0]], 0]);
    band.add('a', { tokens: 10 });
    expect([loads(), serveAll()]).toEqual([[[10, 1]], [2]]);
  });

  it('may let a request go without a turn, which is charged as one that never waited', () => {
    const { band, selector, charges, inside, loads, serveAll } = make(1);
    selector.service?.(0);
    for (let i = 0; i < 2; i++) band.add('a', { tokens: 10 });
    band.add('b', { tokens: 30 });
    band.hold('a');
    dispatch(selector, band, 'a');
    expect([charges(), loads(), inside.flows.size]).toEqual([[10], [[30, 1]], 2]);
    expect(selector.service?.(0)?.flows.map(({ fairnessId, received, owed }) => [fairnessId, received, owed])).toEqual([
      ['a', 10, 10],
      ['b', 0, 0],
    ]);
    band.releaseHeld('a');
    expect([loads(), serveAll()]).toEqual([[[40, 2]], [1, 2]]);
  });

  it('that is let out without having been held back has no second places', () => {
    const { band, loads, selector } = make(1);
    band.add('a', { tokens: 10 });
    selector.flowActivated?.(band.flow('a'));
    expect(loads()).toEqual([[10, 1]]);
  });
});

describe('a request that goes', () => {
  /**
   * Requests of 40 and of 30 tokens: the first in a queue that received 100, the other behind a small one in a queue
   * that received nothing.
   */
  function exchange() {
    const made = make(2);
    made.band.pass('a', { tokens: 100 });
    made.band.add('a', { tokens: 1 });
    const before = made.loads();
    for (const tokens of [40, 30]) made.band.add('a', { tokens });
    return { ...made, before };
  }

  it('leaves its place to the one whose queue has the turn, and is charged to that queue', () => {
    const { band, loads, charges, before } = exchange();
    expect(before).toEqual([
      [0, 0],
      [1, 1],
    ]);
    expect(loads()).toEqual([
      [40, 1],
      [31, 2],
    ]);
    expect(band.serve()?.item.tokens).toBe(1);
    expect(band.serve()?.item.tokens).toBe(40);
    expect(loads()).toEqual([
      [30, 1],
      [0, 0],
    ]);
    expect(charges()).toEqual([100, 41]);
    expect(band.serve()?.item.tokens).toBe(30);
    expect([loads(), charges()]).toEqual([
      [
        [0, 0],
        [0, 0],
      ],
      [130, 41],
    ]);
  });

  it('leaves the work of both queues as it is without it, also where others stand in them', () => {
    const { band, loads } = exchange();
    for (const tokens of [20, 7]) band.add('b', { tokens });
    expect(loads()).toEqual([
      [47, 2],
      [51, 3],
    ]);
    expect(band.serve()?.item.tokens).toBe(1);
    expect(band.serve()?.item.tokens).toBe(40);
    expect(loads()).toEqual([
      [37, 2],
      [20, 1],
    ]);
  });

  it('may leave once it has taken the place of another', () => {
    const { band, loads, serveAll } = exchange();
    for (let i = 0; i < 2; i++) band.serve();
    band.cancel('a', 0);
    expect([loads(), serveAll()]).toEqual([
      [
        [0, 0],
        [0, 0],
      ],
      [],
    ]);
  });

  it('goes from its own place when another flow was picked', () => {
    const { band, selector, loads, serveAll } = make(1);
    for (const name of ['a', 'b', 'c']) band.add(name, { tokens: 10 });
    expect(selector.pick(0)?.fairnessId).toBe('a');
    dispatch(selector, band, 'b');
    expect(loads()).toEqual([[20, 2]]);
    expect(serveAll()).toEqual([0, 2]);
  });

  it('goes from its own place when the one that was picked has left', () => {
    const { band, selector, loads, serveAll } = make(2);
    for (let i = 0; i < 3; i++) band.add('a', { tokens: 10 });
    expect(selector.pick(0)?.fairnessId).toBe('a');
    band.cancel('a', 0);
    dispatch(selector, band, 'a');
    expect(loads().map(([, places]) => places)).toEqual([1, 0]);
    expect(serveAll()).toEqual([2]);
  });
});

describe('faults of foreign functions', () => {
  it('are told of at each step, and the books stay in order', () => {
    const { band, selector, loads } = make(1, {
      weightOf: () => Number.NaN,
      cost: () => {
        throw new Error('broken');
      },
    });
    expect(() => band.add('a', { tokens: 10 })).toThrow('broken');
    expect(loads()[0]?.[1]).toBe(1);
    band.hold('a');
    expect(() => band.releaseHeld('a')).toThrow('broken');
    const flow = band.flow('a');
    const item = flow.queue[0] as ItemView;
    expect(() => selector.dispatched?.(flow, item, 0)).toThrow(/weightOf|broken/);
    expect(() => band.report({ flow, item }, usage(5))).toThrow('broken');
    expect(() => band.settle({ flow, item }, usage(5))).toThrow('broken');
    expect(loads()).toEqual([[0, 0]]);
  });
});

describe('figures of service', () => {
  it('go by the weights of requests, and count those that waited before anybody asked', () => {
    const { band, selector } = make(1, { weightOf: (fairnessId) => (fairnessId === 'a' ? 3 : 1) });
    for (const name of ['a', 'b']) for (let i = 0; i < 2; i++) band.add(name, { tokens: 40 });
    selector.service?.(0);
    band.serve();
    const { flows } = selector.service?.(0) ?? { flows: [] };
    expect(flows.map(({ fairnessId, received, owed }) => [fairnessId, received, owed])).toEqual([
      ['a', 40, 30],
      ['b', 0, 10],
    ]);
  });

  it('go by the weight of the flow where no request says more', () => {
    const band = new FakeBand(shuffleSharded({ ...byPrompt, queues: 1, handSize: 1, weightOf: () => 9 }), {
      weights: { empty: 3 },
    });
    const { selector } = band;
    selector.service?.(0);
    selector.flowActivated?.(band.flow('empty'));
    band.add('b', { tokens: 120 });
    band.serve();
    const { flows } = selector.service?.(0) ?? { flows: [] };
    expect(flows.map(({ fairnessId, owed }) => [fairnessId, owed])).toEqual([
      ['empty', 30],
      ['b', 90],
    ]);
  });

  it('count one that left no longer', () => {
    const { band, selector } = make(1);
    selector.service?.(0);
    for (const name of ['a', 'b', 'b']) band.add(name, { tokens: 40 });
    band.cancel('a', 0);
    band.serve();
    expect(selector.service?.(0)?.flows.map(({ received, owed }) => [received, owed])).toEqual([
      [0, 0],
      [40, 40],
    ]);
  });

  it('know the reports that were ignored', () => {
    const { band, selector } = make(1);
    const running = band.pass('a', { tokens: 10 });
    for (const cost of [25, 20]) band.report(running, usage(cost));
    expect(selector.ignoredReports).toBe(1);
  });

  it('follow what is reported and what it came to', () => {
    const { band, selector } = make(1);
    selector.service?.(0);
    const running = band.pass('a', { tokens: 10 });
    band.report(running, usage(25));
    expect(selector.service?.(0)?.flows).toEqual([{ fairnessId: 'a', settled: 0, received: 25, owed: 25 }]);
    band.settle(running, usage(30));
    expect(selector.service?.(0)?.flows).toEqual([{ fairnessId: 'a', settled: 30, received: 30, owed: 30 }]);
    band.settle(band.pass('a', { tokens: 10 }), usage(5));
    expect(selector.service?.(0)?.flows).toEqual([{ fairnessId: 'a', settled: 35, received: 35, owed: 35 }]);
  });
});
