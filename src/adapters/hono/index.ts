/** `headgate/hono`: flow control for Hono, on Node and on fetch runtimes. */
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
export { flowControl } from './flow-control.js';
export { relay } from './relay.js';
