/** The order by load that pickers share. */
import type { EndpointView } from '../endpoint.js';

/**
 * True when `a` has less to do for its weight: fewer requests in flight, among equals fewer tokens in flight, among
 * these fewer requests ever sent. Equal in all three is not less.
 */
export function isLessLoaded(a: EndpointView, b: EndpointView): boolean {
  const requests = a.inFlightRequests / a.weight - b.inFlightRequests / b.weight;
  if (requests !== 0) return requests < 0;
  const tokens = a.inFlightTokens / a.weight - b.inFlightTokens / b.weight;
  if (tokens !== 0) return tokens < 0;
  return a.dispatchedRequests / a.weight < b.dispatchedRequests / b.weight;
}

/** The first of the least loaded endpoints; undefined if there are none. O(endpoints). */
export function leastLoadedOf(endpoints: readonly EndpointView[]): EndpointView | undefined {
  let best: EndpointView | undefined;
  for (const endpoint of endpoints) if (best === undefined || isLessLoaded(endpoint, best)) best = endpoint;
  return best;
}
