/** Randomness that repeats. */
import { seededRandom } from '../../base/seeded-random.js';

export class Random {
  /** 0 ≤ … < 1 */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seededRandom(seed);
  }

  /** An integer, 0 ≤ … < `below`. */
  int(below: number): number {
    return Math.floor(this.next() * below);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.int(from.length)] as T;
  }
}

/** Acts so many times, each time with further numbers of the same seed. */
export function repeatedly(times: number, seed: number, act: (random: Random, i: number) => void): void {
  const random = new Random(seed);
  for (let i = 0; i < times; i++) act(random, i);
}
