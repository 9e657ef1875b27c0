/** Random numbers by name: a stream for each part, so that removing one tenant does not change what others do. */
import { seededRandom } from '../../base/seeded-random.js';
import { textHash } from '../../base/text-hash.js';

/** A source of 0 <= value < 1. */
export type Random = () => number;

/** The stream of a name: the same numbers for the same seed and name. */
export type RandomStreams = (name: string) => Random;

export function randomStreams(seed: number): RandomStreams {
  return (name) => seededRandom(textHash(`${seed}/${name}`));
}

/** Above 0 and at most 1, so that it has a logarithm. */
function aboveZero(random: Random): number {
  return 1 - random();
}

/** With mean 1. */
export function exponential(random: Random): number {
  return -Math.log(aboveZero(random));
}

/** Mean 0, variance 1. Source: Marsaglia's polar method. No sine: its last digit differs between versions of V8. */
export function normal(random: Random): number {
  for (;;) {
    const x = 2 * random() - 1;
    const y = 2 * random() - 1;
    const square = x * x + y * y;
    if (square > 0 && square < 1) return x * Math.sqrt((-2 * Math.log(square)) / square);
  }
}

/** Scale 1, `shape` above 0. Source: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). */
export function gamma(random: Random, shape: number): number {
  if (shape < 1) return gamma(random, shape + 1) * Math.exp(Math.log(aboveZero(random)) / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(random);
    const root = 1 + c * x;
    if (root <= 0) continue;
    const v = root * root * root;
    if (Math.log(aboveZero(random)) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
  }
}
