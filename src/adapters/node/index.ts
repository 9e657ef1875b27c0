/** `headgate/node`: flow control for node:http and node:http2, and what other adapters are made of. */
export type * from '../http/middleware-types.js';
export type { RelayEnd } from '../http/relayed-answer.js';
export type { WithFlow } from '../http/request-flow.js';
export { type DiagnosticsMessage, publishDiagnostics } from './diagnostics.js';
export * from './event-loop-lag.js';
export { type FlowControlMiddleware, flowControl, flowOf } from './flow-control.js';
export { fromAddresses } from './from-addresses.js';
export { type NodeRequest, type NodeResponse, stripRequestHeaders } from './node-request.js';
export { onResponseEnd } from './on-response-end.js';
export { relay } from './relay.js';
