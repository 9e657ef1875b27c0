/** `headgate/web`: flow control for handlers that take a Request and give a Response, in any framework and runtime. */
export type * from '../http/middleware-types.js';
export { flowControl, flowOf, type WebFlowControl, type WebHandler } from './flow-control.js';
export { relay } from './relay.js';
