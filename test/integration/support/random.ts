/** Chance that can be repeated. */

export interface Random {
  /** 0 <= value < 1. */
  next(): number;
  /** An integer, both ends included. */
  between(least: number, most: number): number;
  pick<T>(values: readonly T[]): T;
}

/** xorshift, 32 bits. */
export function seededRandom(seed: number): Random {
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995) >>> 0 || 1;
  function next(): number {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  }
  return {
    next,
    between: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick: (values) => values[Math.floor(next() * values.length)]!,
  };
}
