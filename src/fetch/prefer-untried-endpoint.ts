/** Sends a request to another endpoint if one has refused it, or was late. */
import type { EndpointPicker } from '../index.js';
import type { FetchRequest } from './flow-fetch.js';

/**
 * Wraps a picker: it sees the endpoints that a request was sent to before only if no other endpoint has room.
 * @example new FlowController({ pool, endpointPicker: elsewhere(leastLoaded()), … })
 */
export function elsewhere(picker: EndpointPicker<FetchRequest>): EndpointPicker<FetchRequest> {
  return {
    type: picker.type,
    pick(endpoints, item, nowMs) {
      const { tried } = item.request.req;
      const others = tried.length === 0 ? endpoints : endpoints.filter(({ id }) => !tried.includes(id));
      return picker.pick(others.length > 0 ? others : endpoints, item, nowMs);
    },
  };
}
