/** The dealer of shuffle sharding, and how well hands keep tenants apart. */
import { expect, it } from 'vitest';
import { shuffleSharded } from '../../../src/index.js';
import {
  deal,
  flowHash,
  mostHashBits,
  requiredHashBits,
} from '../../../src/tiers/2-fairness/by-cost/shuffle-sharding.js';
import { Random } from '../../property/random.js';

interface Dealer {
  readonly maxHashBits: number;
  readonly requiredEntropyBits: readonly (readonly [deck: number, hand: number, bits: number])[];
  readonly invalid: readonly (readonly [deck: number, hand: number])[];
  readonly valid: readonly (readonly [deck: number, hand: number])[];
  readonly uniformity: readonly {
    readonly deck: number;
    readonly hand: number;
    readonly deals: number;
    readonly handsSeen: number;
    readonly eachHandCount: readonly [least: number, most: number];
  }[];
  readonly flowHash: string;
  readonly deals: readonly {
    readonly deck: number;
    readonly hand: number;
    readonly hash: string;
    readonly cards: readonly number[];
  }[];
}

export function dealer(rows: Dealer): void {
  it('takes as many bits of a hash', () => expect(mostHashBits).toBe(rows.maxHashBits));

  it.each(rows.requiredEntropyBits)('%i cards, hands of %i: %i bits', (deck, hand, bits) => {
    expect(requiredHashBits(deck, hand)).toBe(bits);
  });

  it.each(rows.invalid)('rejects %i cards, hands of %i', (queues, handSize) => {
    expect(() => shuffleSharded({ queues, handSize })).toThrowError();
  });

  it.each(rows.valid)('takes %i cards, hands of %i', (queues, handSize) => {
    expect(() => shuffleSharded({ queues, handSize })).not.toThrowError();
  });

  it.each(rows.deals)('deals $cards of $deck for $hash', ({ deck, hand, hash, cards }) => {
    expect(deal(BigInt(hash), deck, hand)).toEqual(cards);
  });

  it('hashes names as the row says', () => {
    const [, salt = '', name = '', hash = ''] = /\("(.*?)","(.*?)"\) -> (0x[0-9a-f]+)/.exec(rows.flowHash) ?? [];
    expect(flowHash(salt, name)).toBe(BigInt(hash));
  });

  it.each(rows.uniformity)(
    'deals every hand of $hand from $deck equally often, over $deals hashes',
    (row) => {
      const counts = new Uint32Array(row.deck ** row.hand);
      for (let hash = 0; hash < row.deals; hash++) {
        const cards = deal(BigInt(hash), row.deck, row.hand).sort((a, b) => a - b);
        let place = 0;
        for (const card of cards) place = place * row.deck + card;
        counts[place] = (counts[place] as number) + 1;
      }
      let seen = 0;
      let least = Number.POSITIVE_INFINITY;
      let most = 0;
      for (const count of counts) {
        if (count === 0) continue;
        seen++;
        least = Math.min(least, count);
        most = Math.max(most, count);
      }
      expect([seen, least, most]).toEqual([row.handsSeen, ...row.eachHandCount]);
    },
    120_000,
  );
}

interface Isolation {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly number[])[];
}

function choose(n: number, k: number): bigint {
  let result = 1n;
  for (let i = 0; i < k; i++) result = (result * BigInt(n - i)) / BigInt(i + 1);
  return result;
}

/** The chance that a hand is covered by `heavy` others, by inclusion and exclusion in whole numbers. */
function coverage(hand: number, queues: number, heavy: number): number {
  const hands = choose(queues, hand) ** BigInt(heavy);
  let sum = 0n;
  for (let missed = 0; missed <= hand; missed++) {
    const term = choose(hand, missed) * choose(queues - missed, hand) ** BigInt(heavy);
    sum += missed % 2 === 0 ? term : -term;
  }
  const scale = 10n ** 30n;
  return Number((sum * scale) / hands) / 1e30;
}

export function isolation({ columns, rows }: Isolation): void {
  const heavy = columns.slice(2).map((column) => Number(/\d+/.exec(column)?.[0]));

  it.each(rows)('hands of %i from %i queues: the exact chance', (hand, queues, ...chances) => {
    for (const [i, chance] of chances.entries()) {
      expect(
        Math.abs(coverage(hand as number, queues as number, heavy[i] as number) / (chance as number) - 1),
      ).toBeLessThan(1e-9);
    }
  });

  const seen = rows.flatMap(([hand = 0, queues = 0, ...chances]) =>
    chances.flatMap((chance, i) => (chance > 1e-3 ? [[hand, queues, heavy[i] as number, chance] as const] : [])),
  );

  it.each(seen)(
    'hands of %i from %i queues, %i heavy tenants: as often as the chance %f says, by the dealer',
    (hand, queues, others, chance) => {
      const random = new Random(hand * queues + others);
      const hash = (): bigint => (BigInt(random.int(2 ** 30)) << 30n) | BigInt(random.int(2 ** 30));
      const rounds = 4000;
      let covered = 0;
      for (let round = 0; round < rounds; round++) {
        const taken = new Set<number>();
        for (let i = 0; i < others; i++) for (const card of deal(hash(), queues, hand)) taken.add(card);
        if (deal(hash(), queues, hand).every((card) => taken.has(card))) covered++;
      }
      const deviation = Math.sqrt(rounds * chance * (1 - chance));
      expect(Math.abs(covered - rounds * chance)).toBeLessThan(5 * Math.max(deviation, 1));
    },
  );
}
