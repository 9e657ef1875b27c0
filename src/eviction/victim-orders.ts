/** Orders of victims. Every order begins with the lowest priority. */
import { withoutParameters } from '../base/policy-definition.js';
import type { EvictionOrdering, EvictionOrderingDefinition, InFlightView } from './eviction-policy.js';

function lowestPriority(a: InFlightView, b: InFlightView): number {
  return a.priority - b.priority;
}

function newest(a: InFlightView, b: InFlightView): number {
  return b.dispatchedAtMs - a.dispatchedAtMs;
}

function progress({ usage }: InFlightView): number {
  return usage.promptTokens + usage.completionTokens;
}

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

export const priorityThenTimePlugin: EvictionOrderingDefinition = withoutParameters(priorityThenTime);

export const leastProgressPlugin: EvictionOrderingDefinition = withoutParameters(leastProgress);

export const largestFootprintPlugin: EvictionOrderingDefinition = withoutParameters(largestFootprint);
