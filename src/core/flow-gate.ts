/** The least that an adapter needs of a controller. */
import type { FlowKey, FlowRequest } from './flow-request.js';
import type { Outcome } from './outcome/outcome.js';

export interface FlowGate<R extends FlowRequest = FlowRequest> {
  enqueue(request: R, key: FlowKey): Promise<Outcome>;
}
