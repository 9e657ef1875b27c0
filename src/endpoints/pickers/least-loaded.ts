/** Sends a request where the fewest are running. */
import { withoutParameters } from '../../base/policy-definition.js';
import type { EndpointPicker, EndpointPickerDefinition } from './endpoint-picker.js';
import { leastLoadedOf } from './load-order.js';

const type = 'least-loaded-picker';

/**
 * Picks the endpoint with the fewest requests in flight for its weight. Ties go to the fewest tokens in flight, then to
 * the fewest requests ever sent, both for its weight, then to the order of the pool. O(endpoints).
 */
export function leastLoaded(): EndpointPicker {
  return { type, pick: leastLoadedOf };
}

export const leastLoadedPlugin: EndpointPickerDefinition = withoutParameters('endpointPicker', type, leastLoaded);
