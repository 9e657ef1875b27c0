import { describe, expect, it } from 'vitest';
import type { Share } from '../../../../src/tiers/2-fairness/by-cost/share.js';
import { ShareTree } from '../../../../src/tiers/2-fairness/by-cost/share-tree.js';
import { type Lift, VirtualCounters } from '../../../../src/tiers/2-fairness/by-cost/virtual-counters.js';

/** A tree of so many levels, and its shares by their names. */
function make(levels: number, { weights, lift = 'floor' }: { weights?: Record<string, number>; lift?: Lift } = {}) {
  const orders = Array.from({ length: levels }, () => () => new VirtualCounters(lift));
  const tree = new ShareTree(orders, {
    pathOf: (fairnessId) => fairnessId.split('/'),
    weightOf: (path) => weights?.[path.join('/')] ?? 1,
  });
  const at = (path: string): Share => tree.leafAt(path.split('/'));
  return {
    ...{ tree, at },
    /** A request comes to the leaf. */
    come: (path: string, arrival = 0): Share => {
      const leaf = at(path);
      leaf.arrival = arrival;
      tree.activate(leaf, true);
      return leaf;
    },
    names: () => Array.from(tree.shares(), ({ name }) => name),
    counters: () => Object.fromEntries(Array.from(tree.shares(), ({ name, counter }) => [name, counter])),
    active: () =>
      Array.from(tree.shares())
        .filter(({ isActive }) => isActive)
        .map(({ name }) => name),
  };
}

describe('a tree of shares', () => {
  it('has one leaf for a path, and goes level by level', () => {
    const { tree, at, names } = make(2);
    expect(at('acme/1')).toBe(at('acme/1'));
    for (const path of ['acme/2', 'globex/1']) at(path);
    expect(names()).toEqual(['acme', 'globex', '1', '2', '1']);
    expect(tree.leaf('acme').name).toBe('acme');
    const flat = make(1);
    expect(flat.tree.leaf('a')).toBe(flat.at('a'));
  });

  it('is picked from the root down', () => {
    const { tree, come } = make(2);
    expect(tree.next()).toBeUndefined();
    const second = come('acme/2', 5);
    const first = come('acme/1', 3);
    come('globex/1', 4);
    // By arrival: acme came with 5, and globex with 4.
    expect(tree.next()?.siblings.owner?.name).toBe('globex');
    tree.charge(tree.next() as Share, 1, 1, true);
    expect(tree.next()).toBe(first);
    tree.charge(first, 1, 1, true);
    tree.charge(tree.next() as Share, 5, 1, true);
    expect(tree.next()).toBe(second);
  });

  it('is active along the path of what waits, and no further', () => {
    const { tree, come, active } = make(3);
    const [one, two] = [come('a/x/1'), come('a/y/2')];
    expect(active()).toEqual(['a', 'x', 'y', '1', '2']);
    tree.deactivate(one);
    expect(active()).toEqual(['a', 'y', '2']);
    tree.deactivate(two);
    expect([active(), tree.next()]).toEqual([[], undefined]);
    tree.activate(one, true);
    expect(active()).toEqual(['a', 'x', '1']);
  });
});

describe('a charge', () => {
  it('is divided by the weight of each level, and open at each until it is settled', () => {
    const { tree, come, counters, at } = make(3, { weights: { a: 2, 'a/x': 4 } });
    const leaf = come('a/x/1');
    come('a/x/2');
    come('b/z/3');
    tree.charge(leaf, 80, 5, true);
    expect(counters()).toMatchObject({ a: 40, b: 0, x: 20, 1: 16, 2: 0 });
    tree.correct(leaf, -40, 5);
    expect(counters()).toMatchObject({ a: 20, x: 10, 1: 8 });
    const above = [leaf, leaf.siblings.owner, leaf.siblings.owner?.siblings.owner];
    expect(above.map((share) => share?.unsettled)).toEqual([1, 1, 1]);
    tree.settle(leaf);
    expect(above.map((share) => share?.unsettled)).toEqual([0, 0, 0]);
    expect(at('a/x/1')).toBe(leaf);
  });

  it('lifts the shares of a request that never waited, and not those of one that did', () => {
    const { tree, come, at } = make(1);
    const waiting = come('a');
    tree.charge(waiting, 10, 1, true);
    tree.charge(waiting, 10, 1, true);
    const [passing, gone] = [at('passing'), at('gone')];
    tree.charge(passing, 5, 1, false);
    tree.charge(gone, 5, 1, true);
    expect([passing.counter, gone.counter]).toEqual([15, 5]);
  });

  it('leaves a share to the arrival of the member that goes next', () => {
    const { tree, come } = make(2);
    const [first] = [come('acme/1', 1), come('acme/2', 7), come('globex/1', 5)];
    tree.charge(first as Share, 0, 1, true);
    tree.charge(first as Share, 3, 1, true);
    expect(first?.siblings.owner?.arrival).toBe(7);
  });

  it('is followed by a look at what may be forgotten', () => {
    const { tree, come, at, names } = make(1);
    const owing = at('owing');
    tree.charge(owing, 10, 1, false);
    tree.settle(owing);
    expect(names()).toEqual(['owing']);
    const waiting = come('a');
    tree.charge(waiting, 20, 1, true);
    expect(names()).toEqual(['owing', 'a']);
    tree.charge(waiting, 1, 1, true);
    expect(names()).toEqual(['a']);
  });
});

describe('a share below which something is held back', () => {
  it('has been waiting all the time: neither another request that comes nor one that goes at once lifts it', () => {
    for (const comes of [true, false]) {
      const { tree, come, at, counters } = make(3);
      const held = come('a/x/held');
      tree.hold(held);
      tree.deactivate(held);
      const waiting = come('b/z/1');
      for (let i = 0; i < 3; i++) tree.charge(waiting, 10, 1, true);
      if (comes) come('a/x/other');
      else tree.charge(at('a/x/other'), 5, 1, false);
      expect(counters()).toMatchObject({ a: comes ? 0 : 5, x: comes ? 0 : 5, b: 30 });
      expect([held, held.siblings.owner, held.siblings.owner?.siblings.owner].map((share) => share?.heldFlows)).toEqual(
        [1, 1, 1],
      );
    }
  });

  it('is lifted as any other once nothing is held back', () => {
    const { tree, come, counters } = make(2);
    const held = come('a/held');
    tree.hold(held);
    tree.deactivate(held);
    tree.releaseHeld(held);
    const waiting = come('b/1');
    for (let i = 0; i < 3; i++) tree.charge(waiting, 10, 1, true);
    come('a/other');
    expect(counters()).toMatchObject({ a: 20, b: 30 });
  });
});

describe('another request in front', () => {
  it('changes the place of a leaf among equals', () => {
    const { tree, come } = make(1);
    const [a, b] = [come('a', 1), come('b', 2)];
    expect(tree.next()).toBe(a);
    tree.renew(a, 3);
    expect([tree.next(), a.counter]).toEqual([b, 0]);
  });
});

describe('the lead of a leaf', () => {
  it('is what it received beyond those that go next, by its weight', () => {
    const { tree, come } = make(1);
    const [a] = [come('a'), come('b')];
    tree.charge(a as Share, 30, 3, true);
    expect(tree.lead(a as Share, 3)).toBe(30);
  });

  it('is that of the share above it which is furthest ahead', () => {
    const { tree, come } = make(2, { weights: { acme: 2 } });
    const [one, two] = [come('acme/1'), come('acme/2'), come('globex/1')] as [Share, Share, Share];
    tree.charge(one, 30, 1, true);
    tree.charge(two, 50, 1, true);
    expect([tree.lead(one, 1), tree.lead(two, 1)]).toEqual([80, 80]);
    const apart = make(2);
    const ahead = apart.come('acme/1');
    apart.come('acme/2');
    apart.tree.charge(ahead, 30, 1, true);
    expect(apart.tree.lead(ahead, 1)).toBe(30);
  });
});

describe('what is forgotten', () => {
  it('goes up: a share without members goes with its last one', () => {
    const { tree, at, names } = make(3, { lift: 'floor' });
    const leaf = at('a/x/1');
    at('b/y/2');
    tree.charge(leaf, 0, 1, false);
    tree.settle(leaf);
    expect(names()).toEqual(['b', 'y', '2']);
  });

  it('is nothing while something is open or waits below', () => {
    const { tree, at, come, names } = make(2);
    const leaf = at('a/1');
    tree.charge(leaf, 0, 1, false);
    tree.charge(leaf, 0, 1, false);
    tree.settle(leaf);
    expect(names()).toEqual(['a', '1']);
    come('a/2');
    tree.settle(leaf);
    expect(names()).toEqual(['a', '2']);
  });

  it('is a leaf that the controller has forgotten, where no floor is', () => {
    const { tree, at, names } = make(2, { lift: 'none' });
    const leaf = at('a/1');
    tree.review(leaf);
    expect(names()).toEqual(['a', '1']);
    tree.orphan(leaf);
    expect(names()).toEqual([]);
  });

  it('is, of more than a thousand that owe and are gone, the one that went first', () => {
    const { tree, at, names } = make(2);
    for (let i = 0; i < 1024; i++) {
      const leaf = at(`org ${i}/key`);
      tree.charge(leaf, 10, 1, false);
      tree.settle(leaf);
      tree.orphan(leaf);
    }
    const before = names();
    const one = at('one more/key');
    tree.charge(one, 10, 1, false);
    tree.settle(one);
    tree.orphan(one);
    const after = names();
    expect([before.includes('org 0'), after.includes('one more'), after.length <= before.length]).toEqual([
      true,
      true,
      true,
    ]);
    expect(after).not.toContain('org 0');
  });
});
