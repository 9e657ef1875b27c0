/** `headgate/express`: flow control for Express 4 and 5. */
export type {
  AdapterGate,
  Classification,
  ContextScope,
  FlowControlOptions,
  HttpFlowRequest,
  RequestContext,
} from '../http/adapter-options.js';
export type { RelayEnd, RelayOptions, UpstreamAnswer } from '../http/relayed-answer.js';
export type { RequestFlow, WithFlow } from '../http/request-flow.js';
export type { FlowControlMiddleware } from '../node/flow-control.js';
export { relay } from '../node/relay.js';
export { type ExpressRequest, flowControl } from './flow-control.js';
