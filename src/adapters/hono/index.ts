/** `headgate/hono`: flow control for Hono, on Node and on fetch runtimes. */
export type * from '../http/middleware-types.js';
export { flowControl } from './flow-control.js';
export { relay } from './relay.js';
