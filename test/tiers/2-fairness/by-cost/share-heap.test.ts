import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Share } from '../../../../src/tiers/2-fairness/by-cost/share.js';
import { ShareHeap } from '../../../../src/tiers/2-fairness/by-cost/share-heap.js';
import { ShareTree } from '../../../../src/tiers/2-fairness/by-cost/share-tree.js';
import { VirtualCounters } from '../../../../src/tiers/2-fairness/by-cost/virtual-counters.js';

const tree = new ShareTree([() => new VirtualCounters('floor')]);

function makeShares(count: number): Share[] {
  return Array.from({ length: count }, (_, i) => tree.leaf(`share-${i}`));
}

/** Shares in a heap, by what a list sorted anew each time has them at. */
class Model {
  readonly heap = new ShareHeap<Share>();
  readonly entries = new Map<Share, readonly [key: number, tie: number]>();

  push(share: Share, key: number, tie: number): void {
    this.heap.push(share, key, tie);
    this.entries.set(share, [key, tie]);
  }

  update(share: Share, key: number, tie: number): void {
    this.heap.update(share, key, tie);
    this.entries.set(share, [key, tie]);
  }

  remove(share: Share): void {
    this.heap.remove(share);
    this.entries.delete(share);
  }

  /** Names of all in the order in which they should go. */
  sorted(): string[] {
    const entries = [...this.entries].sort(
      ([, [key, tie]], [, [otherKey, otherTie]]) => key - otherKey || tie - otherTie,
    );
    return entries.map(([{ name }]) => name);
  }

  /** The same as the heap has it; it is empty then. */
  drained(): string[] {
    const names: string[] = [];
    for (let { first } = this.heap; first !== undefined && names.length <= this.entries.size; { first } = this.heap) {
      names.push(first.name);
      this.heap.remove(first);
    }
    return names;
  }
}

/** `count` shares with at most so many keys among them, in an order without a pattern, each tie once. */
function filled(count: number, keys: number): { model: Model; shares: Share[] } {
  const model = new Model();
  const shares = makeShares(count);
  for (const [i, share] of shares.entries()) model.push(share, ((7 * i * i + i) % 1009) % keys, (37 * i) % 1009);
  return { model, shares };
}

const step = fc.record({
  kind: fc.constantFrom('push', 'update', 'updateFirst', 'remove', 'lower', 'first'),
  which: fc.nat(40),
  key: fc.nat(6),
});

describe('a heap of shares', () => {
  it('gives the least key first, and the lower tie among equal keys, after any history', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const heap = new ShareHeap<Share>();
        const shares = makeShares(41);
        for (const share of shares) share.slot = -1;
        const keys = new Map<Share, number>();
        const tieOf = (share: Share) => shares.indexOf(share);
        const least = () =>
          [...keys].sort(([a, keyOfA], [b, keyOfB]) => keyOfA - keyOfB || tieOf(a) - tieOf(b))[0] ?? [
            undefined,
            Number.NaN,
          ];
        for (const { kind, which, key } of steps) {
          const [first] = least();
          const share = kind === 'updateFirst' && first !== undefined ? first : (shares[which] as Share);
          if (kind === 'push' && !keys.has(share)) {
            heap.push(share, key, tieOf(share));
            keys.set(share, key);
          } else if (kind.startsWith('update') && keys.has(share)) {
            heap.update(share, key, tieOf(share));
            keys.set(share, key);
          } else if (kind === 'remove' && keys.delete(share)) {
            heap.remove(share);
            expect(share.slot).toBe(-1);
          } else if (kind === 'lower') {
            heap.lower(key);
            for (const [each, before] of keys) keys.set(each, before - key);
          } else if (kind === 'first') {
            expect([heap.first, heap.firstKey]).toEqual(least());
          }
          expect(heap.size).toBe(keys.size);
        }
        for (; keys.size > 0; keys.delete(heap.first as Share), heap.remove(heap.first as Share)) {
          expect([heap.first, heap.firstKey]).toEqual(least());
        }
        expect(heap.first).toBeUndefined();
      }),
    );
  });

  it.each([[1], [5], [1000]])('has any number of shares in order, with %i keys among them', (keys) => {
    for (const count of [1, 2, 5, 6, 16, 17, 30, 100]) {
      const { model } = filled(count, keys);
      expect(model.drained()).toEqual(model.sorted());
    }
  });

  it.each([[1], [5], [1000]])('follows every change of a key or a tie, with %i keys among the shares', (keys) => {
    for (let which = 0; which < 40; which++) {
      for (const [key, tie] of [
        [-1, 2000],
        [0, -1],
        [keys / 2, 500],
        [keys, 2000],
      ] as const) {
        const { model, shares } = filled(40, keys);
        model.update(shares[which] as Share, key, tie);
        expect(model.drained()).toEqual(model.sorted());
      }
    }
  });

  it('follows the change of another when the key of the first has changed before', () => {
    for (let which = 0; which < 30; which++) {
      for (const key of [-2, 3, 900]) {
        const { model, shares } = filled(30, 1000);
        model.update(model.heap.first as Share, 500, 2000);
        model.update(shares[which] as Share, key, 0);
        expect(model.drained()).toEqual(model.sorted());
      }
    }
  });

  it('keeps the order when any share is removed, also after the first has changed', () => {
    for (let which = 0; which < 30; which++) {
      for (const changes of [false, true]) {
        const { model, shares } = filled(30, 1000);
        if (changes) model.update(model.heap.first as Share, 500, 2000);
        model.remove(shares[which] as Share);
        expect([model.heap.size, (shares[which] as Share).slot]).toEqual([29, -1]);
        expect(model.drained()).toEqual(model.sorted());
      }
    }
  });

  it('follows a change of the tie alone', () => {
    for (let which = 0; which < 40; which++) {
      for (const tie of [-1, 2000]) {
        const { model, shares } = filled(40, 3);
        const share = shares[which] as Share;
        model.update(share, model.entries.get(share)?.[0] as number, tie);
        expect(model.drained()).toEqual(model.sorted());
      }
    }
  });

  /** Shares whose keys stand at the places 0, 1, 2, … because none is less than its parent's. */
  function placed(...keys: number[]): { model: Model; shares: Share[] } {
    const model = new Model();
    const shares = makeShares(keys.length);
    for (const [i, key] of keys.entries()) model.push(shares[i] as Share, key, i);
    return { model, shares };
  }

  it('lets a share rise that takes the place of one removed below another parent', () => {
    const { model, shares } = placed(0, 100, 10, 200, 201, 101, 102, 103, 104, 11, 12, 13);
    model.remove(shares[5] as Share);
    expect(model.drained()).toEqual(model.sorted());
  });

  it('lets nothing rise past a first whose key has changed', () => {
    const coming = placed(0, 3, 10, 11, 12, 4, 5, 6);
    coming.model.update(coming.shares[0] as Share, 9, 0);
    const [late, ...later] = makeShares(11).slice(8) as [Share, Share, Share];
    coming.model.push(late, 2, 50);
    for (const [i, share] of later.entries()) coming.model.push(share, 20 + i, 60 + i);
    expect(coming.model.drained()).toEqual(coming.model.sorted());
    const leaving = placed(0, 3, 7, 10, 11, 4, 5, 6, 6.5, 8);
    leaving.model.update(leaving.shares[0] as Share, 9, 0);
    leaving.model.remove(leaving.shares[1] as Share);
    expect(leaving.model.drained()).toEqual(leaving.model.sorted());
  });

  it('takes a share in where it belongs while the first has changed', () => {
    const model = new Model();
    const [a, b, c] = makeShares(3) as [Share, Share, Share];
    model.push(a, 1, 0);
    model.push(b, 3, 1);
    model.update(a, 9, 0);
    model.push(c, 5, 2);
    expect([model.heap.firstKey, model.drained()]).toEqual([3, model.sorted()]);
  });

  it('has room for four times what it holds at most, beyond the first sixteen, and loses nobody when it shrinks', () => {
    const { model, shares } = filled(400, 1000);
    expect(model.heap.capacity).toBe(512);
    const rooms: number[] = [];
    for (const share of shares.slice(0, 380)) {
      model.remove(share);
      rooms.push(model.heap.capacity);
    }
    expect([rooms.indexOf(256), rooms.indexOf(128), rooms.indexOf(64)]).toEqual([400 - 128, 400 - 64, 400 - 32]);
    expect(model.heap.capacity).toBe(64);
    expect(model.drained()).toEqual(model.sorted());
    expect(model.heap.capacity).toBe(64);
  });

  it('grows when it is full, and not before', () => {
    expect([16, 17, 32, 33].map((count) => filled(count, 1000).model.heap.capacity)).toEqual([16, 32, 32, 64]);
  });

  it('gives out all at once, and can be filled again', () => {
    const { model, shares } = filled(20, 1000);
    model.update(model.heap.first as Share, 2000, 0);
    expect(model.heap.clear()).toEqual(shares);
    expect([model.heap.size, model.heap.first, model.heap.firstKey]).toEqual([0, undefined, Number.NaN]);
    expect(shares.every(({ slot }) => slot === -1)).toBe(true);
    const [a, b] = shares as [Share, Share];
    model.heap.push(a, 2, 0);
    model.heap.push(b, 1, 1);
    expect([model.heap.first, model.heap.firstKey]).toEqual([b, 1]);
  });

  it('has the first sink once its key is asked for, and stay where its key is still the least', () => {
    const model = new Model();
    const [a, b, c] = makeShares(3) as [Share, Share, Share];
    for (const [i, share] of [a, b, c].entries()) model.push(share, 10 * i, i);
    model.update(a, 5, 0);
    expect([model.heap.firstKey, model.heap.first]).toEqual([5, a]);
    model.update(a, 10, 5);
    expect([model.heap.firstKey, model.heap.first]).toEqual([10, b]);
    model.heap.lower(4);
    expect([model.heap.firstKey, model.heap.first]).toEqual([6, b]);
  });
});
