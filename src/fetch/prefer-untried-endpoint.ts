/** Has a request that an endpoint refused, or was late with, sent to another one. */
import type { EndpointPicker } from '../index.js';
import type { FetchRequest } from './flow-fetch.js';

/**
 * The picker, which sees the endpoints that a request was sent to before only where no other one has room.
 *
 * @example
 * new FlowController({ pool, endpointPicker: elsewhere(leastLoaded()), … })
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
