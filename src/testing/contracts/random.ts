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
