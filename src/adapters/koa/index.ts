/** `headgate/koa`: flow control for Koa. */
export type { AdapterGate, Classification, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
export type { RequestFlow, WithFlow } from '../http/request-flow.js';
export { flowControl, type KoaContext, type KoaMiddleware } from './flow-control.js';
