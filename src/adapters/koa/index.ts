/** `headgate/koa`: flow control for Koa. */
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
export { flowControl, type KoaContext, type KoaMiddleware, type WithFlowState } from './flow-control.js';
export { relay } from './relay.js';
