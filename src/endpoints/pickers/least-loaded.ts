/** Sends a request where the fewest are running. */
import type { EndpointPicker } from './endpoint-picker.js';
import { leastLoadedOf } from './load-order.js';

/**
 * The endpoint with the fewest requests in flight for its weight; ties by fewest tokens in flight, then by fewest requests ever sent,
 * both for its weight, then in the order of the pool. O(endpoints).
 */
export function leastLoaded(): EndpointPicker {
  return { type: 'least-loaded-picker', pick: leastLoadedOf };
}
