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

const step = fc.record({
  kind: fc.constantFrom('push', 'update', 'updateFirst', 'remove', 'lower', 'first'),
  which: fc.nat(40),
  key: fc.nat(6),
});

describe('a heap of shares', () => {
  it('gives the least key first, and the lower tie among equal keys, after any history', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const heap = new ShareHeap();
        const shares = makeShares(41);
        for (const share of shares) share.slot = -1;
        const keys = new Map<Share, number>();
        const tieOf = (share: Share) => shares.indexOf(share);
        const least = () =>
          [...keys].sort(([a, keyOfA], [b, keyOfB]) => keyOfA - keyOfB || tieOf(a) - tieOf(b))[0] ?? [undefined, Number.NaN];
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
});
