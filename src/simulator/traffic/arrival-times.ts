/** When requests of an open loop come: gaps of mean 1, laid out along the rate. */
import { exponential, gamma, type Random } from '../random/random-streams.js';
import { RateWalk } from '../random/rate-profile.js';
import type { Arrivals } from './traffic-spec.js';

/** The next arrival, ms from the start of the traffic; Infinity when no more come. */
export type ArrivalTimes = () => number;

type OpenArrivals = Extract<Arrivals, { type: 'poisson' | 'gamma' | 'fixed' | 'sessions' }>;

export function arrivalTimes(arrivals: OpenArrivals, random: Random): ArrivalTimes {
  const walk = new RateWalk(arrivals.rate);
  switch (arrivals.type) {
    case 'poisson':
    case 'sessions':
      return () => walk.advance(exponential(random));
    case 'gamma': {
      const shape = 1 / (arrivals.cv * arrivals.cv);
      return () => walk.advance(gamma(random, shape) / shape);
    }
    case 'fixed': {
      let gap = arrivals.offset ?? random();
      return () => {
        const atMs = walk.advance(gap);
        gap = 1;
        return atMs;
      };
    }
  }
}
