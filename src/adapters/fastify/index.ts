/** `headgate/fastify`: flow control for Fastify 5. */
export type * from '../http/middleware-types.js';
export type { RelayEnd } from '../http/relayed-answer.js';
export { type FlowControlPlugin, flowControl } from './flow-control.js';
export { relay } from './relay.js';
