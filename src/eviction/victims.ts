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

const progress = ({ usage }: InFlightView): number => usage.promptTokens + usage.completionTokens;

function ordering(type: string, between: EvictionOrdering['compare']): EvictionOrdering {
  return { type, compare: (a, b) => a.priority - b.priority || between(a, b) || b.dispatchedAtMs - a.dispatchedAtMs };
}

/** Lowest priority first, then newest: the least time is lost. Source: llm-d-router, priority-then-time order. */
export function priorityThenTime(): EvictionOrdering {
  return ordering('priority-then-time-eviction-order-policy', () => 0);
}

/** Lowest priority first, then the fewest tokens reported by `lease.report`, then newest: the least work is lost. */
export function leastProgress(): EvictionOrdering {
  return ordering('least-progress-eviction-order-policy', (a, b) => progress(a) - progress(b));
}

/** Lowest priority first, then the most tokens booked, then newest: the fewest requests are lost for the room. */
export function largestFootprint(): EvictionOrdering {
  return ordering('largest-footprint-eviction-order-policy', (a, b) => b.tokens - a.tokens);
}
