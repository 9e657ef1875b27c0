/** `headgate/fastify`: flow control for Fastify 5. */
export type {
  AdapterGate,
  Classification,
  ContextScope,
  FlowControlOptions,
  HttpFlowRequest,
  RequestContext,
} from '../http/adapter-options.js';
export type { RelayEnd, RelayOptions, UpstreamAnswer } from '../http/relayed-answer.js';
export type { RequestFlow } from '../http/request-flow.js';
export { type FlowControlPlugin, flowControl } from './flow-control.js';
export { relay } from './relay.js';
