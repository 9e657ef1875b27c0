import { describe, expect, it } from 'vitest';
import { leastService, virtualTokenCounter } from '../../../../src/index.js';
import { rebaseAbove, Share, ShareGroup } from '../../../../src/tiers/2-fairness/by-cost/share.js';
import { type Lift, VirtualCounters } from '../../../../src/tiers/2-fairness/by-cost/virtual-counters.js';
import { byPrompt } from './backlogged.js';
import { FakeBand, serveAll } from './fake-band.js';

/** A group whose floor the test moves. */
function make(lift: Lift = 'floor') {
  const order = new VirtualCounters(lift);
  const orphans = new Set<Share>();
  const group = new ShareGroup(order, undefined, orphans);
  return {
    ...{ order, orphans, group },
    /** Picks one of this counter, as far as the order is concerned. */
    floorTo: (counter: number): void => order.charge(Object.assign(new Share('picked', group), { counter }), 0),
    share: (name: string, counter = 0): Share => Object.assign(group.of(name), { counter }),
    names: () => Array.from(group.values(), ({ name }) => name),
  };
}

describe('a group', () => {
  it('makes a share for a name once', () => {
    const { group, names } = make();
    expect(group.of('a')).toBe(group.of('a'));
    group.of('b');
    expect([group.size, names()]).toEqual([2, ['a', 'b']]);
  });

  it('forgets an idle share that is not above the floor, and makes another for its name', () => {
    const { group, floorTo, share, names } = make();
    floorTo(5);
    const [below, at, above] = [share('below', 4), share('at', 5), share('above', 6)];
    for (const each of [below, at, above]) group.rest(each);
    expect([names(), below.isForgotten, at.isForgotten, above.isForgotten]).toEqual([['above'], true, true, false]);
    expect(group.of('at')).not.toBe(at);
  });

  it('forgets those above the floor as the floor passes them, the least first', () => {
    const { group, floorTo, share, names } = make();
    for (const [name, counter] of [
      ['a', 9],
      ['b', 7],
      ['c', 8],
    ] as const) {
      group.rest(share(name, counter));
    }
    group.tidy();
    expect(names()).toEqual(['a', 'b', 'c']);
    floorTo(8);
    group.tidy();
    expect(names()).toEqual(['a']);
    expect(group.of('a').slot).toBeGreaterThanOrEqual(0);
    floorTo(9);
    group.tidy();
    expect(names()).toEqual([]);
  });

  it('goes by what a share owes when it was put to rest last', () => {
    const { group, floorTo, share, names } = make();
    const a = share('a', 6);
    group.rest(a);
    a.counter = 10;
    group.rest(a);
    floorTo(9);
    group.tidy();
    expect(names()).toEqual(['a']);
    floorTo(10);
    group.tidy();
    expect([names(), a.slot]).toEqual([[], -1]);
  });

  it('keeps a share that is no longer idle, whatever the floor, and one that is active where its order has it', () => {
    const { group, order, floorTo, share, names } = make();
    const a = share('a', 6);
    group.rest(a);
    group.wake(a);
    expect(a.slot).toBe(-1);
    floorTo(100);
    group.tidy();
    expect(names()).toEqual(['a']);
    order.activate(a, false);
    a.isActive = true;
    group.wake(a);
    expect([order.size, order.next()]).toEqual([1, a]);
  });

  it('keeps idle shares of an order without a floor, until the controller has forgotten their flows', () => {
    const { group, share, names } = make('none');
    const [a, b] = [share('a', 5), share('b', -5)];
    for (const each of [a, b]) group.rest(each);
    group.tidy();
    expect([names(), a.slot]).toEqual([['a', 'b'], -1]);
    for (const each of [a, b]) group.orphan(each);
    expect(names()).toEqual([]);
  });
});

describe('a share whose flow the controller has forgotten', () => {
  it('is forgotten once it is idle', () => {
    const { group, share, names } = make('none');
    const a = share('a');
    a.unsettled = 1;
    group.orphan(a);
    expect([a.isOrphan, names()]).toEqual([true, ['a']]);
    a.unsettled = 0;
    group.rest(a);
    expect(names()).toEqual([]);
  });

  it('is no orphan while something waits in it, or is held back', () => {
    const { group, share, names } = make('none');
    const [active, holding] = [share('active'), share('holding')];
    active.isActive = true;
    holding.heldFlows = 1;
    for (const each of [active, holding]) group.orphan(each);
    expect([active.isOrphan, holding.isOrphan, names()]).toEqual([false, false, ['active', 'holding']]);
  });

  it('is remembered for what it owes, after those that were forgotten longer ago', () => {
    const { group, orphans, share } = make();
    const [a, b, c] = [share('a', 5), share('b', 6), share('c', 7)];
    for (const each of [a, b, c]) group.orphan(each);
    expect([...orphans]).toEqual([a, b, c]);
    group.forget(a);
    expect([[...orphans], group.size]).toEqual([[b, c], 2]);
  });

  it('is none any more when it wakes', () => {
    const { group, orphans, share } = make();
    const a = share('a', 5);
    group.orphan(a);
    expect([...orphans]).toEqual([a]);
    group.wake(a);
    expect([orphans.size, a.isOrphan]).toEqual([0, false]);
  });

  it('is the only kind that is remembered so', () => {
    const { group, orphans, share } = make();
    group.rest(share('a', 5));
    expect([orphans.size, group.size]).toEqual([0, 1]);
  });
});

describe('counters that have grown large', () => {
  it('are lowered together, idle shares included, and owe what they owed', () => {
    const { group, order, floorTo, share, names } = make();
    const [waiting, owing] = [share('waiting', rebaseAbove + 20), share('owing', rebaseAbove + 30)];
    order.activate(waiting, true);
    waiting.isActive = true;
    group.rest(owing);
    floorTo(rebaseAbove + 10);
    group.tidy();
    expect([waiting.counter, owing.counter, order.floor, order.mark]).toEqual([10, 20, 0, 10]);
    floorTo(19);
    group.tidy();
    expect(names()).toEqual(['waiting', 'owing']);
    floorTo(20);
    group.tidy();
    expect(names()).toEqual(['waiting']);
  });

  it.each([
    ['leastService', () => leastService(byPrompt)],
    ['virtualTokenCounter without a lift', () => virtualTokenCounter({ ...byPrompt, lift: 'none' })],
    ['virtualTokenCounter as the paper lifts', () => virtualTokenCounter({ ...byPrompt, lift: 'vtc' })],
  ])('leave the order as it was, also for a flow that is new (%s)', (_, make) => {
    const orders = [rebaseAbove / 2, rebaseAbove * 2].map((much) => {
      const band = new FakeBand(make());
      for (const tokens of [much, 100, 100, 100]) band.add('a', { tokens });
      for (let i = 0; i < 2; i++) band.serve();
      for (const name of ['new', 'newer']) for (let i = 0; i < 3; i++) band.add(name, { tokens: 100 });
      return serveAll(band);
    });
    expect(orders[1]).toBe(orders[0]);
  });

  it('let a share that is new begin as far behind the others as before, each time', () => {
    const { group, order, floorTo, share } = make('none');
    const a = share('a', rebaseAbove + 10);
    for (let times = 1; times <= 3; times++) {
      floorTo(rebaseAbove + 10);
      group.tidy();
      expect([a.counter, group.of(`new ${times}`).counter]).toEqual([0, -times * (rebaseAbove + 10)]);
      a.counter += rebaseAbove + 10;
    }
    expect(order.excess).toBe(0);
  });

  it('stay as they are before', () => {
    const { group, floorTo, share } = make();
    const a = share('a', rebaseAbove);
    floorTo(rebaseAbove - 1);
    group.rest(a);
    group.tidy();
    expect(a.counter).toBe(rebaseAbove);
  });
});
