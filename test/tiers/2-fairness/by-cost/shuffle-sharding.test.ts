import { describe, expect, it } from 'vitest';
import { deal, flowHash, requiredHashBits } from '../../../../src/tiers/2-fairness/by-cost/shuffle-sharding.js';

/** The reference, all in integers of any size: takes the card of that rank among those that are left. */
function dealSlowly(hash: bigint, deckSize: number, handSize: number): number[] {
  const left = Array.from({ length: deckSize }, (_, card) => card);
  const hand: number[] = [];
  let rest = hash;
  for (let i = 0; i < handSize; i++) {
    const count = BigInt(left.length);
    hand.push(...left.splice(Number(rest % count), 1));
    rest /= count;
  }
  return hand;
}

describe('the dealer', () => {
  it.each([
    [0n, [0, 1, 2]],
    [1n, [1, 0, 2]],
    [42n, [6, 4, 0]],
  ])('deals the hands of the reference (%s)', (hash, hand) => {
    expect(deal(hash, 9, 3)).toEqual(hand);
  });

  it.each([
    [64, 8],
    [1024, 6],
    [3, 3],
    [2000, 5],
  ])('deals to the last bit of a hash, from %i cards hands of %i', (deckSize, handSize) => {
    for (let i = 0; i < 30; i++) {
      const hash = flowHash('salt', `tenant ${i}`);
      expect(deal(hash, deckSize, handSize)).toEqual(dealSlowly(hash, deckSize, handSize));
    }
  });

  it('deals different cards, each hand as often as any other', () => {
    const counts = new Map<string, number>();
    for (let hash = 0n; hash < 90n; hash++) {
      const hand = deal(hash, 10, 2);
      expect(new Set(hand).size).toBe(2);
      counts.set(hand.join(), (counts.get(hand.join()) ?? 0) + 1);
    }
    expect(counts.size).toBe(90);
    expect(new Set(counts.values())).toEqual(new Set([1]));
  });

  it('hashes as the reference does, by the salt and the name', () => {
    expect(flowHash('a', 'b')).toBe(0xd3b1bc1bae71b259n);
    expect(flowHash('a', 'c')).not.toBe(flowHash('a', 'b'));
    expect(flowHash('ab', '')).not.toBe(flowHash('a', 'b'));
  });

  it('knows how many bits decide a hand, a part of one counting as one', () => {
    expect(requiredHashBits(1024, 6)).toBe(60);
    expect(requiredHashBits(512, 8)).toBe(72);
    expect(requiredHashBits(100, 3)).toBe(20);
    expect(requiredHashBits(1, 1)).toBe(0);
  });
});
