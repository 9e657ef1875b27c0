/** Victims: who may be one, and their orders, each of which begins with the lowest priority. */
import type { EvictionFilter, EvictionOrdering, InFlightView } from './eviction-policy.js';

/** Accepts priority < 0. Source: llm-d-router, sheddable-eviction-filter. */
export function sheddableOnly(): EvictionFilter {
  return { type: 'sheddable-eviction-filter', accepts: (request) => request.priority < 0 };
}

/** Accepts any priority until `lease.answered` or `lease.report` told something. Source: SMG, priority scheduling. */
export function noByteSent(): EvictionFilter {
  const accepts: EvictionFilter['accepts'] = ({ hasAnswer }) => !hasAnswer;
  return { type: 'no-byte-sent-eviction-filter', accepts, stillAccepts: accepts };
}

const lowestPriority = (a: InFlightView, b: InFlightView): number => a.priority - b.priority;
const newest = (a: InFlightView, b: InFlightView): number => b.dispatchedAtMs - a.dispatchedAtMs;
const progress = ({ usage }: InFlightView): number => usage.promptTokens + usage.completionTokens;

/** Lowest priority first, then newest: the least time is lost. Source: llm-d-router, priority-then-time order. */
export function priorityThenTime(): EvictionOrdering {
  return { type: 'priority-then-time-eviction-order-policy', compare: (a, b) => lowestPriority(a, b) || newest(a, b) };
}

/** Lowest priority first, then the fewest tokens reported by `lease.report`, then newest: the least work is lost. */
export function leastProgress(): EvictionOrdering {
  return {
    type: 'least-progress-eviction-order-policy',
    compare: (a, b) => lowestPriority(a, b) || progress(a) - progress(b) || newest(a, b),
  };
}

/** Lowest priority first, then the most tokens booked, then newest: the fewest requests are lost for the room. */
export function largestFootprint(): EvictionOrdering {
  return {
    type: 'largest-footprint-eviction-order-policy',
    compare: (a, b) => lowestPriority(a, b) || b.tokens - a.tokens || newest(a, b),
  };
}
