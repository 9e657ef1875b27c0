/** `headgate/express`: flow control for Express 4 and 5. */
export type * from '../http/middleware-types.js';
export type { RelayEnd } from '../http/relayed-answer.js';
export type { WithFlow } from '../http/request-flow.js';
export type { FlowControlMiddleware } from '../node/flow-control.js';
export { relay } from '../node/relay.js';
export { type ExpressRequest, flowControl } from './flow-control.js';
