/** Sends a request where the fewest are running. */
import type { EndpointView } from './endpoint.js';
import type { EndpointPicker } from './endpoint-picker.js';

function isBetter(a: EndpointView, b: EndpointView): boolean {
  if (a.inFlightRequests !== b.inFlightRequests) return a.inFlightRequests < b.inFlightRequests;
  if (a.inFlightTokens !== b.inFlightTokens) return a.inFlightTokens < b.inFlightTokens;
  return a.dispatchedRequests < b.dispatchedRequests;
}

/**
 * The endpoint with the fewest requests in flight; ties by fewest tokens in flight, then by fewest requests ever sent, then in the
 * order of the pool. O(endpoints).
 */
export function leastLoaded(): EndpointPicker {
  return {
    type: 'least-loaded-picker',
    pick(endpoints) {
      let best = endpoints[0];
      for (let i = 1; i < endpoints.length; i++) {
        const candidate = endpoints[i];
        if (candidate !== undefined && best !== undefined && isBetter(candidate, best)) best = candidate;
      }
      return best;
    },
  };
}
