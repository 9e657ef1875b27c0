/** Sends a request where the fewest are running: the order by load, which other pickers share. */
import type { EndpointView } from '../endpoint.js';
import type { EndpointPicker } from './endpoint-picker.js';

/** True when `a` has fewer requests in flight for its weight, among equals fewer tokens, then fewer requests ever. */
export function isLessLoaded(a: EndpointView, b: EndpointView): boolean {
  const requests = a.inFlightRequests / a.weight - b.inFlightRequests / b.weight;
  if (requests !== 0) return requests < 0;
  const tokens = a.inFlightTokens / a.weight - b.inFlightTokens / b.weight;
  if (tokens !== 0) return tokens < 0;
  return a.dispatchedRequests / a.weight < b.dispatchedRequests / b.weight;
}

/** The endpoint with the most of what `figureOf` tells; ties: the less loaded. O(endpoints). */
export function mostOf(
  endpoints: readonly EndpointView[],
  figureOf: (endpoint: EndpointView) => number,
): EndpointView | undefined {
  let best = endpoints[0];
  let most = -Infinity;
  for (const endpoint of endpoints) {
    const figure = figureOf(endpoint);
    const isBetter = figure > most || (figure === most && best !== undefined && isLessLoaded(endpoint, best));
    if (!isBetter) continue;
    best = endpoint;
    most = figure;
  }
  return best;
}

/** The first of the least loaded endpoints; undefined if there are none. O(endpoints). */
export function leastLoadedOf(endpoints: readonly EndpointView[]): EndpointView | undefined {
  let best: EndpointView | undefined;
  for (const endpoint of endpoints) if (best === undefined || isLessLoaded(endpoint, best)) best = endpoint;
  return best;
}

/** The fewest requests in flight for its weight, then tokens, then requests ever. Of more than 64 eight are drawn. */
export function leastLoaded(): EndpointPicker {
  return { type: 'least-loaded-picker', takesSamples: true, pick: leastLoadedOf };
}
