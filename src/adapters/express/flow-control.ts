/** Flow control as Express middleware, for Express 4 and 5: the one of node:http, with `req` typed as Express's. */
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import type { RequestFlow } from '../http/request-flow.js';
import { type FlowControlMiddleware, flowControl as nodeFlowControl } from '../node/flow-control.js';
import type { NodeRequest } from '../node/node-request.js';

declare global {
  // The interface that Express's own types leave open for middleware; nothing of Express is imported.
  namespace Express {
    interface Request {
      /** Set by `flowControl`. Undefined at run time without it in front, and on requests that it skipped. */
      flow: RequestFlow;
    }
  }
}

/** The part of Express's request that options use. For all of it name its type: `flowControl<express.Request>(…)`. */
export type ExpressRequest = NodeRequest &
  Express.Request & {
    get(name: string): string | undefined;
    readonly path: string;
    readonly originalUrl: string;
    readonly ip?: string | undefined;
  };

/**
 * Middleware that holds a request until it is dispatched. Handlers find `req.flow` with the lease and a signal that
 * aborts when the client leaves; the lease is released when the response ends, however it ends. Put it before body
 * parsers. Dropped requests are answered by the error contract, or reach the error handler with `onDrop: 'throw'`.
 * @throws FlowConfigError for options that cannot be right.
 * @example app.use('/v1', flowControl(flow, { classify: (req) => ({ fairnessId: req.auth.tenant, priority: 0 }) }));
 */
export function flowControl<Req extends NodeRequest = ExpressRequest>(
  flow: AdapterGate<HttpFlowRequest<NodeRequest>>,
  options: FlowControlOptions<Req> = {},
): FlowControlMiddleware {
  return nodeFlowControl(flow, options);
}
