/** `headgate/koa`: flow control for Koa. */
export type * from '../http/middleware-types.js';
export type { RelayEnd } from '../http/relayed-answer.js';
export type { WithFlow } from '../http/request-flow.js';
export { flowControl, type KoaContext, type KoaMiddleware, type WithFlowState } from './flow-control.js';
export { relay } from './relay.js';
