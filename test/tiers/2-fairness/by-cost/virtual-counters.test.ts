import { describe, expect, it } from 'vitest';
import { rebaseAbove, Share, type ShareGroup } from '../../../../src/tiers/2-fairness/by-cost/share.js';
import { type Lift, VirtualCounters } from '../../../../src/tiers/2-fairness/by-cost/virtual-counters.js';

/** Counters, and shares that come and go in them. */
function make(lift: Lift) {
  const order = new VirtualCounters(lift);
  const share = (name: string, counter = 0): Share => {
    const made = new Share(name, {} as ShareGroup);
    made.counter = counter;
    return made;
  };
  const come = (given: Share, isNew = true): Share => {
    order.activate(given, isNew);
    given.isActive = true;
    return given;
  };
  const go = (given: Share): void => {
    order.deactivate(given);
    given.isActive = false;
  };
  return { order, share, come, go };
}

describe('virtual counters', () => {
  it('let the least counter go next, of equals the one whose request came first', () => {
    const { order, share, come } = make('floor');
    const [a, b] = [share('a', 5), share('b', 5)];
    a.arrival = 9;
    b.arrival = 8;
    come(a);
    come(b);
    expect([order.next(), order.size]).toEqual([b, 2]);
    order.charge(b, 1);
    expect([order.next(), b.counter]).toEqual([a, 6]);
  });

  it('go by a counter that is corrected, of a share that waits and of one that does not', () => {
    const { order, share, come } = make('floor');
    const [a, b] = [come(share('a', 5)), come(share('b', 6))];
    order.correct(a, 4);
    expect(order.next()).toBe(b);
    const idle = share('idle', 3);
    order.correct(idle, -2);
    expect([idle.counter, idle.slot, order.size]).toEqual([1, -1, 2]);
  });

  it('are at the least counter of those that wait, or else at the largest that was picked', () => {
    const { order, share, come, go } = make('floor');
    expect(order.mark).toBe(0);
    const a = come(share('a', 5));
    expect(order.mark).toBe(5);
    order.charge(a, 10);
    expect(order.mark).toBe(15);
    go(a);
    expect(order.mark).toBe(5);
  });
});

describe('lift floor', () => {
  it('lets a share begin at the largest counter that was picked, not at what that was charged, and not below its own', () => {
    const { order, share, come } = make('floor');
    const a = come(share('a', 5));
    order.charge(a, 100);
    expect(order.floor).toBe(5);
    expect(come(share('b', 1)).counter).toBe(5);
    expect(come(share('c', 7)).counter).toBe(7);
  });

  it('never falls: a smaller counter that is picked later leaves it', () => {
    const { order, share } = make('floor');
    order.charge(share('a', 5), 1);
    order.charge(share('b', 2), 1);
    expect(order.floor).toBe(5);
  });

  it('lifts a share whose request never waited, and none that waited all along', () => {
    const { order, share, come } = make('floor');
    order.charge(share('a', 5), 1);
    const passing = share('b', 1);
    order.pass(passing);
    expect(passing.counter).toBe(5);
    expect(come(share('c', 1), false).counter).toBe(1);
  });
});

describe('lift vtc', () => {
  it('lets a share begin at the least counter of those that wait, and has no floor', () => {
    const { order, share, come } = make('vtc');
    come(share('a', 8));
    come(share('b', 9));
    expect(come(share('c', 1)).counter).toBe(8);
    expect(order.floor).toBeNaN();
  });

  it('lets a share that finds nobody begin at the counter of the last to have left, or at its own when nobody ever came', () => {
    const { share, come, go } = make('vtc');
    const a = come(share('a', 8));
    expect(a.counter).toBe(8);
    const b = come(share('b', 20));
    go(b);
    go(a);
    expect(come(share('c', 1)).counter).toBe(8);
  });

  it('takes a share whose request never waited for one that came and left, while no other waits', () => {
    const alone = make('vtc');
    alone.order.pass(alone.share('a', 8));
    expect(alone.come(alone.share('b', 1)).counter).toBe(8);
    const beside = make('vtc');
    const waiting = beside.come(beside.share('a', 8));
    beside.order.pass(beside.share('passing', 30));
    beside.go(waiting);
    expect(beside.come(beside.share('b', 1)).counter).toBe(8);
  });
});

describe('lift none', () => {
  it('lets every share begin at its own counter', () => {
    const { order, share, come } = make('none');
    order.charge(share('a', 50), 1);
    come(share('b', 40));
    expect(come(share('c', 1)).counter).toBe(1);
    expect(order.floor).toBeNaN();
  });
});

describe('counters that have grown large', () => {
  it('may be lowered by the largest that was picked once that exceeds 2^40', () => {
    const { order, share } = make('floor');
    order.charge(share('a', rebaseAbove), 1);
    expect(order.excess).toBe(0);
    order.charge(share('b', rebaseAbove + 1), 1);
    expect(order.excess).toBe(rebaseAbove + 1);
  });

  it('keep their order and their floor when they are lowered', () => {
    const { order, share, come } = make('floor');
    const [a, b] = [come(share('a', 10)), come(share('b', 12))];
    order.charge(a, 3);
    for (const each of [a, b]) each.counter -= 10;
    order.lower(10);
    expect([order.floor, order.mark, order.next()]).toEqual([0, 2, b]);
  });

  it.each([
    ['forgotten', true, 1],
    ['kept by its group, which lowers it itself', false, 8],
  ])('are lowered with the last to have left, when that is %s', (_, isForgotten, begins) => {
    const { order, share, come, go } = make('vtc');
    const a = come(share('a', 8));
    go(a);
    a.isForgotten = isForgotten;
    order.lower(7);
    expect(come(share('b', -100)).counter).toBe(begins);
  });
});
