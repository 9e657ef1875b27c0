/** `headgate/web`: flow control for handlers that take a Request and give a Response, in any framework and runtime. */
export type {
  AdapterGate,
  Classification,
  ContextScope,
  FlowControlOptions,
  HttpFlowRequest,
  RequestContext,
} from '../http/adapter-options.js';
export type { RelayOptions, UpstreamAnswer } from '../http/relayed-answer.js';
export type { RequestFlow } from '../http/request-flow.js';
export { flowControl, flowOf, type WebFlowControl, type WebHandler } from './flow-control.js';
export { relay } from './relay.js';
