/** `headgate/undici`: flow control for calls that go out through undici 7 and 8. */
export type { AdapterGate, Classification, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
export type { RequestFlow } from '../http/request-flow.js';
export { type FlowContext, flowControl } from './flow-control.js';
