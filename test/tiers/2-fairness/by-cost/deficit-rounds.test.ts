import { afterEach, describe, expect, it, vi } from 'vitest';
import { DeficitRounds } from '../../../../src/tiers/2-fairness/by-cost/deficit-rounds.js';
import { rebaseAbove, Share, type ShareGroup } from '../../../../src/tiers/2-fairness/by-cost/share.js';
import { watchRounds } from './watch-rounds.js';

/** Rounds, and shares that come and go in them. */
function make(quantum?: number) {
  const rounds = new DeficitRounds(quantum);
  const come = (share: Share, isNew = true): Share => {
    rounds.activate(share, isNew);
    share.isActive = true;
    return share;
  };
  const share = (name: string, counter = 0): Share => Object.assign(new Share(name, {} as ShareGroup), { counter });
  return {
    ...{ rounds, come, share },
    /** Shares that come one after the other. */
    all: (...names: string[]): Share[] => names.map((name) => come(share(name))),
    go: (leaving: Share): void => {
      rounds.deactivate(leaving);
      leaving.isActive = false;
    },
    /** Serves one request after the other, each of this cost; the names of the shares. */
    serve: (count: number, cost: number): string =>
      Array.from({ length: count }, () => {
        const next = rounds.next();
        if (next !== undefined) rounds.charge(next, cost);
        return next?.name ?? '-';
      }).join(''),
    /** The next request costs this much. */
    spend: (cost: number): string => {
      const next = rounds.next();
      if (next !== undefined) rounds.charge(next, cost);
      return next?.name ?? '-';
    },
  };
}

describe('a round', () => {
  it('gives each share a quantum, in the order in which they came', () => {
    const { rounds, all, serve } = make(10);
    all('a', 'b', 'c');
    expect([rounds.size, serve(12, 5)]).toEqual([3, 'aabbccaabbcc']);
  });

  it('is nobody’s when nobody is there', () => {
    const { rounds, all, go } = make(10);
    expect(rounds.next()).toBeUndefined();
    const [a] = all('a');
    go(a as Share);
    expect([rounds.next(), rounds.size]).toEqual([undefined, 0]);
  });

  it('is sat out by a share as often as it takes to pay for what it used beyond its quantum', () => {
    const { all, spend, serve } = make(10);
    all('a', 'b');
    expect(spend(35)).toBe('a');
    // Its counter is 35: at levels 20 and 30 it sits out, and at 40 it has its turn.
    expect(serve(9, 5)).toBe('bbbbbbabb');
  });

  it('is over for a share that used its quantum exactly', () => {
    const { all, serve } = make(10);
    all('a', 'b');
    expect(serve(6, 10)).toBe('ababab');
  });

  it('has those that come back from sitting out at their old places', () => {
    const { all, spend, serve } = make(10);
    all('a', 'b', 'c', 'd');
    expect([spend(10), spend(25), spend(10), spend(25)]).toEqual(['a', 'b', 'c', 'd']);
    // Round 2 has a and c alone, round 3 has all four.
    expect(serve(6, 10)).toBe('acabcd');
  });

  it('that everybody sits out is not walked through', () => {
    const { rounds, all, spend, serve } = make(10);
    all('a', 'b');
    expect([spend(1e12), spend(1e12 + 25)]).toEqual(['a', 'b']);
    expect(serve(3, 10)).toBe('aaa');
    expect(rounds.floor).toBe(1e12 + 20);
    // Once more, in a later round.
    expect([spend(1e6), spend(1e6)]).toEqual(['b', 'a']);
    expect(rounds.next()).toBeDefined();
    expect(rounds.floor).toBeLessThan(1e12 + 1e6 + 100);
  });
});

describe('a share that comes', () => {
  it('begins at the floor, which is a quantum below the level of the round, or at its own counter', () => {
    const { rounds, all, serve, come, share } = make(10);
    all('a');
    expect([rounds.floor, rounds.mark]).toEqual([0, 0]);
    serve(3, 10);
    expect([rounds.floor, rounds.mark]).toEqual([20, 20]);
    expect(come(share('b', 3)).counter).toBe(20);
    expect(come(share('c', 27)).counter).toBe(27);
  });

  it('is the last of this round', () => {
    const { all, serve, come, share } = make(10);
    all('a', 'b');
    expect(serve(1, 10)).toBe('a');
    come(share('c'));
    expect(serve(5, 10)).toBe('bcabc');
  });

  it('back in the round in which it had its turn has lost what it did not use, and keeps its place', () => {
    const { all, serve, come, go } = make(10);
    const [a] = all('a', 'b') as [Share, Share];
    expect(serve(1, 4)).toBe('a');
    go(a);
    come(a);
    expect(a.counter).toBe(10);
    expect(serve(4, 5)).toBe('bbaa');
  });

  it('back in that round still owes what it used beyond its quantum', () => {
    const { all, spend, come, go, serve } = make(10);
    const [a] = all('a', 'b') as [Share, Share];
    expect(spend(25)).toBe('a');
    go(a);
    come(a);
    expect(a.counter).toBe(25);
    expect(serve(7, 5)).toBe('bbbbabb');
  });

  it('back in a later round is treated as one that comes', () => {
    const { all, serve, come, go } = make(10);
    const [a] = all('a', 'b') as [Share, Share];
    expect(serve(1, 4)).toBe('a');
    go(a);
    expect(serve(4, 5)).toBe('bbbb');
    come(a);
    expect(a.counter).toBe(10);
    expect(serve(4, 5)).toBe('aabb');
  });

  it('after it was held back is lifted to nothing, and may go on in this round', () => {
    const { all, serve, come, go } = make(10);
    const [a] = all('a', 'b') as [Share, Share];
    expect(serve(1, 4)).toBe('a');
    go(a);
    expect(serve(1, 5)).toBe('b');
    come(a, false);
    expect(a.counter).toBe(4);
    expect(serve(3, 5)).toBe('baa');
  });
});

describe('a share that leaves', () => {
  it('from this round, from the next or while it sits out is not served any more', () => {
    const { rounds, all, spend, serve, go } = make(10);
    const [a, b, c, d] = all('a', 'b', 'c', 'd') as [Share, Share, Share, Share];
    expect([spend(35), spend(10)]).toEqual(['a', 'b']);
    expect(rounds.next()).toBe(c);
    expect(rounds.size).toBe(4);
    for (const each of [a, b, c]) go(each);
    expect(rounds.size).toBe(1);
    expect(serve(5, 10)).toBe('ddddd');
    go(d);
    expect(rounds.next()).toBeUndefined();
  });
});

describe('a request that never waited', () => {
  it('lifts its share to the floor', () => {
    const { rounds, all, serve, share } = make(10);
    all('a');
    serve(3, 10);
    const passing = share('passing', 4);
    rounds.pass(passing);
    expect(passing.counter).toBe(20);
  });

  it.each([
    [9, 0],
    [10, 10],
    [19, 10],
    [25, 20],
  ])(
    'lets the rounds pass by that its share has used up, where nobody waits: at %i the floor is %i',
    (counter, floor) => {
      const { rounds, share } = make(10);
      const passing = share('passing', counter);
      rounds.pass(passing);
      expect([rounds.floor, passing.counter]).toEqual([floor, counter]);
    },
  );

  it('lets no round pass by while others wait', () => {
    const { rounds, all, share } = make(10);
    all('a');
    rounds.pass(share('passing', 50));
    expect(rounds.floor).toBe(0);
  });
});

describe('a correction', () => {
  it('of a share that is not there, or stands in line, changes its counter alone', () => {
    const { rounds, all, share, serve } = make(10);
    const [a] = all('a', 'b') as [Share, Share];
    rounds.correct(a, 4);
    const idle = share('idle', 7);
    rounds.correct(idle, -2);
    expect([a.counter, idle.counter, rounds.size]).toEqual([4, 5, 2]);
    expect(serve(5, 5)).toBe('aabba');
  });

  it('lets a share that sat out have its turn in the next round, when its place in this one is past', () => {
    const { rounds, all, spend, serve } = make(10);
    const [a] = all('a', 'b') as [Share, Share];
    expect([spend(35), spend(4)]).toEqual(['a', 'b']);
    rounds.correct(a, -30);
    expect(serve(5, 5)).toBe('bbaaa');
  });

  it('lets it have its turn in this round, when its place is still to come', () => {
    const { rounds, all, spend, serve } = make(10);
    const [, , c] = all('a', 'b', 'c') as [Share, Share, Share];
    expect([spend(10), spend(10), spend(95)]).toEqual(['a', 'b', 'c']);
    expect(serve(1, 4)).toBe('a');
    rounds.correct(c, -85);
    expect(serve(5, 6)).toBe('abbcc');
  });

  it('lets it sit out longer, or less long, when it still owes', () => {
    for (const [amount, order] of [
      [20, 'bbbbba'],
      [-10, 'bba'],
    ] as const) {
      const { rounds, all, spend, serve } = make(10);
      const [a] = all('a', 'b') as [Share, Share];
      expect(spend(35)).toBe('a');
      expect(serve(1, 10)).toBe('b');
      rounds.correct(a, amount);
      expect(serve(order.length - 1, 10)).toBe(order.slice(1));
    }
  });
});

describe('counters that have grown large', () => {
  it('may be lowered by the floor once that exceeds 2^40', () => {
    const { rounds } = make(10);
    rounds.floor = rebaseAbove;
    expect(rounds.excess).toBe(0);
    rounds.floor = rebaseAbove + 8;
    expect(rounds.excess).toBe(rebaseAbove + 8);
  });

  it('are lowered with the level, so that a turn goes on where it was', () => {
    const { rounds, all, serve } = make(10);
    const shares = all('a', 'b');
    expect(serve(5, 5)).toBe('aabba');
    for (const each of shares) each.counter -= 10;
    rounds.lower(10);
    expect([rounds.floor, serve(5, 5)]).toEqual([0, 'abbaa']);
  });
});

describe('a quantum that is small beside what is owed', () => {
  afterEach(() => void vi.restoreAllMocks());

  it.each([
    [1e-9, 1e9],
    [1e-14, 999.3],
    [1e-300, 1000],
  ])('lets every round begin above the one before: %d beside costs of %d', (quantum, cost) => {
    watchRounds(64);
    const { rounds, all, spend, serve } = make(quantum);
    all('a', 'b');
    expect([spend(cost), spend(cost), rounds.next()?.name]).toEqual(['a', 'b', 'a']);
    expect(rounds.floor).toBeGreaterThanOrEqual(cost * (1 - 1e-15));
    expect(rounds.floor).toBeLessThan(cost * (1 + 1e-15));
    expect(serve(6, cost)).toBe('ababab');
  });

  it('has shares sit out single rounds, after more rounds than a double can count', () => {
    watchRounds(200);
    const quantum = 2 ** -30;
    const { rounds, all, spend, serve } = make(quantum);
    const shares = all('a', 'b');
    expect([spend(2 ** 40), spend(2 ** 40), rounds.next()?.name]).toEqual(['a', 'b', 'a']);
    const { floor } = rounds;
    for (const share of shares) share.counter -= floor;
    rounds.lower(floor);
    serve(2, 0);
    for (const share of shares) share.counter = 0;
    expect(spend(4.5 * quantum)).toBe('a');
    const order = serve(12, quantum / 2);
    expect(order.indexOf('a')).toBeGreaterThan(2);
    expect(order).toContain('a');
  });

  it('has its counters lowered sooner, so that a quantum stays more than a step of a double', () => {
    const { rounds } = make(2 ** -20);
    rounds.floor = 2 ** 24;
    expect(rounds.excess).toBe(0);
    rounds.floor = 2 ** 24 + 1;
    expect(rounds.excess).toBe(2 ** 24 + 1);
  });
});

describe('a quantum that follows the costs', () => {
  /** Of the round that begins. */
  function quantumOf(rounds: DeficitRounds, next: () => unknown): number {
    const before = rounds.floor;
    while (rounds.floor === before) next();
    return rounds.floor - before;
  }

  it('is the largest cost, from the next round on', () => {
    const { rounds, all, spend } = make();
    all('a');
    expect(spend(1)).toBe('a');
    expect(quantumOf(rounds, () => spend(1))).toBe(1);
    spend(50);
    quantumOf(rounds, () => spend(1));
    expect(quantumOf(rounds, () => spend(1))).toBe(50);
    spend(20);
    quantumOf(rounds, () => spend(1));
    expect(quantumOf(rounds, () => spend(1))).toBe(50);
  });

  it('is halved at each look when costs have become smaller, at the earliest after 1024 dispatches, and stays the largest of late', () => {
    const { rounds, all, spend } = make();
    all('a');
    spend(64);
    const quanta: number[] = [];
    for (let i = 0; i < 1024 * 4; i++) {
      const before = rounds.floor;
      spend(24);
      if (rounds.floor > before) quanta.push(rounds.floor - before);
    }
    expect([...new Set(quanta.slice(2))]).toEqual([64, 32, 24]);
  });

  it('is looked at with every 1024th dispatch, when small ones came for as long', () => {
    const { rounds, all, spend } = make();
    const [a] = all('a') as [Share];
    expect([spend(64), quantumOf(rounds, () => rounds.next())]).toEqual(['a', 1]);
    let dispatches = 1;
    for (let quantum = 64; quantum === 64; quantum = quantumOf(rounds, () => rounds.next())) {
      rounds.charge(a, 1);
      rounds.correct(a, quantum - 1);
      dispatches++;
    }
    expect(dispatches).toBe(2048);
  });

  it('never falls below 1, and follows no cost where it was given', () => {
    const small = make();
    small.all('a');
    for (let i = 0; i < 1100; i++) small.spend(0.25);
    expect(quantumOf(small.rounds, () => small.spend(0.25))).toBe(1);
    const fixed = make(10);
    fixed.all('a');
    for (let i = 0; i < 1100; i++) fixed.spend(20);
    quantumOf(fixed.rounds, () => fixed.spend(5));
    expect(quantumOf(fixed.rounds, () => fixed.spend(5))).toBe(10);
  });

  it('calls shares back as soon as the larger quantum has paid for them', () => {
    const { all, spend, serve } = make();
    all('a', 'b');
    expect([spend(1000), spend(100)]).toEqual(['a', 'b']);
    // Both owe; with the quantum of 1000 both have paid after a round, and not after a thousand and a hundred.
    expect(serve(4, 100)).toBe('abbb');
  });
});
