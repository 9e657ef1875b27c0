/** Distributions of lengths and times: how a scenario writes them, and what draws from them, always from 0 up. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import { oneOfShapes, type Shapes } from '../one-of-shapes.js';
import { exponential, gamma, normal, type Random } from './random-streams.js';

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
