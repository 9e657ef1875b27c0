/** A controller as observers need it. `enqueue` is not called: it tells the compiler the type of the requests. */
import type { FlowController, FlowRequest } from '../../index.js';

export type ObservedFlow<R extends FlowRequest = FlowRequest> = Pick<FlowController<R>, 'enqueue' | 'on' | 'figures'>;

/** Ends an observation of a controller. */
export interface Observation {
  /** Takes everything back that was registered. Repeating it does nothing. */
  stop(): void;
}
