/** Shuffle sharding: deals every tenant a hand of queues; hardly any two tenants have all their queues in common. */
import { sha256 } from '@noble/hashes/sha2';

/** The most bits of a hash that a hand may take, because the hash alone must decide the hand. */
export const mostHashBits = 60;

/** The bits of a hash that dealing takes. */
export function requiredHashBits(deckSize: number, handSize: number): number {
  return Math.ceil(Math.log2(deckSize) * handSize);
}

const encoder = /* @__PURE__ */ new TextEncoder();

/**
 * The first 8 bytes of SHA-256 over salt, zero byte and name, lowest first: without the salt nobody can choose whom to
 * share with. Source: kubernetes, apiserver, flowcontrol (hashFlowID).
 */
export function flowHash(salt: string, name: string): bigint {
  const digest = sha256(encoder.encode(`${salt}\u0000${name}`));
  return new DataView(digest.buffer, digest.byteOffset).getBigUint64(0, true);
}

/** Different cards from 0 to `deckSize` − 1, all hands alike likely. O(handSize²). Source: kubernetes, apiserver. */
export function deal(hash: bigint, deckSize: number, handSize: number): number[] {
  const remainders: number[] = [];
  const hand: number[] = [];
  let rest = hash;
  // After a card or two the rest of the hash is exact as a number, which is ten times faster.
  let exact: number | undefined;
  for (let i = 0; i < handSize; i++) {
    let card: number;
    if (exact === undefined) {
      const left = BigInt(deckSize - i);
      card = Number(rest % left);
      rest /= left;
      if (rest < 2n ** 53n) exact = Number(rest);
    } else {
      card = exact % (deckSize - i);
      exact = (exact - card) / (deckSize - i);
    }
    remainders.push(card);
    // The remainder counts the cards that are left: it is shifted past those that were dealt.
    for (let j = i - 1; j >= 0; j--) if (card >= (remainders[j] as number)) card++;
    hand.push(card);
  }
  return hand;
}
