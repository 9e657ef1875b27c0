/** The types that the adapters of all frameworks export. */
export type {
  AdapterGate,
  Classification,
  ContextScope,
  FlowControlOptions,
  HttpFlowRequest,
  RequestContext,
} from './adapter-options.js';
export type { RelayOptions, UpstreamAnswer } from './relayed-answer.js';
export type { RequestFlow } from './request-flow.js';
