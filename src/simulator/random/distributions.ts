/**
 * Random numbers, and distributions of lengths and times: how a scenario writes them, and what draws from them, always
 * from 0 up. Each part draws from a stream by its name, so that removing one tenant does not change what others do.
 */
import * as s from '../../base/schema/schema.js';
import { seededRandom } from '../../base/seeded-random.js';
import { textHash } from '../../base/text-hash.js';
import type { Schema } from '../../index.js';
import { oneOfShapes, type Shapes } from '../schemas.js';

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
function normal(random: Random): number {
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

/** A number stands for `fixed`. Figures are in the unit of their subject: ms for times (or `'100ms'`), tokens. */
export type Distribution<N = number> =
  | N
  | { readonly type: 'fixed'; readonly value: N }
  | { readonly type: 'exponential'; readonly mean: N }
  | { readonly type: 'uniform'; readonly from: N; readonly to: N }
  /** `sigma` of the logarithm. */
  | { readonly type: 'lognormal'; readonly mean: N; readonly sigma: number }
  /** `cv`: standard deviation over mean. */
  | { readonly type: 'gamma'; readonly mean: N; readonly cv: number }
  /** One of the values at random, as often as its weight says. */
  | { readonly type: 'values'; readonly values: readonly N[]; readonly weights?: readonly number[] | undefined }
  /** The values in order, again and again: a trace. */
  | { readonly type: 'sequence'; readonly values: readonly N[] };

/** Draws one figure. */
export type Sampler = () => number;

function shapesOf(figure: Schema<number>): Shapes<Exclude<Distribution, number>['type']> {
  const type = s.anything();
  const values = s.list(figure);
  return {
    fixed: s.object({ type, value: figure }),
    exponential: s.object({ type, mean: figure }),
    uniform: s.object({ type, from: figure, to: figure }),
    lognormal: s.object({ type, mean: figure, sigma: s.atLeastZero() }),
    gamma: s.object({ type, mean: figure, cv: s.aboveZero() }),
    values: s.object(
      { type, values, weights: s.optional(s.list(s.atLeastZero())) },
      ({ values: given, weights }, report) => {
        if (given.length === 0) report('at least one value', ['values']);
        if (weights !== undefined && weights.length !== given.length)
          report(`as many weights as values (${given.length})`, ['weights']);
        if (weights?.every((weight) => weight === 0) === true) report('a weight above 0', ['weights']);
      },
    ),
    sequence: s.object({ type, values }, ({ values: given }, report) => {
      if (given.length === 0) report('at least one value', ['values']);
    }),
  };
}

/** Figures are read by `figure`: a number, or a span of time such as '100ms'. */
export function distribution(figure: Schema<number> = s.atLeastZero()): Schema<Distribution> {
  return oneOfShapes('type', shapesOf(figure), 'a number', figure);
}

/** A function that draws from a distribution with these random numbers. */
export function samplerOf(given: Distribution, random: Random): Sampler {
  if (typeof given === 'number') return () => given;
  switch (given.type) {
    case 'fixed':
      return () => given.value;
    case 'exponential':
      return () => given.mean * exponential(random);
    case 'uniform':
      return () => given.from + (given.to - given.from) * random();
    case 'lognormal': {
      const mu = Math.log(given.mean) - (given.sigma * given.sigma) / 2;
      return () => Math.exp(mu + given.sigma * normal(random));
    }
    case 'gamma': {
      const shape = 1 / (given.cv * given.cv);
      return () => (given.mean / shape) * gamma(random, shape);
    }
    case 'values':
      return weighted(given.values, given.weights, random);
    case 'sequence': {
      let next = 0;
      return () => given.values[next++ % given.values.length] as number;
    }
  }
}

function weighted(values: readonly number[], weights: readonly number[] | undefined, random: Random): Sampler {
  if (weights === undefined) return () => values[Math.floor(random() * values.length)] as number;
  let sum = 0;
  const upTo = weights.map((weight) => (sum += weight));
  return () => {
    const drawn = random() * sum;
    return values[upTo.findIndex((bound) => drawn < bound)] as number;
  };
}
