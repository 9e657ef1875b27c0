/** Flow control in front of a handler of node:http, node:http2, or of any framework whose middleware is `(req, res, next)`. */
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl, type Verdict } from '../http/http-flow-control.js';
import type { WithFlow } from '../http/request-flow.js';
import { NodeExchange } from './node-exchange.js';
import type { NodeRequest, NodeResponse } from './node-request.js';
import { respond, setQueueDuration } from './respond.js';

/** `next()` runs the handler; `next(error)` is the host's error handling. Neither is called for a client that left. */
export type FlowControlMiddleware<Req extends NodeRequest> = (req: Req, res: NodeResponse, next: (error?: unknown) => void) => void;

/**
 * Middleware that holds a request until it is dispatched. The handler finds `req.flow` with the lease and a signal that aborts when
 * the client leaves; the lease is released when the response ends, however it ends. Put it before anything that reads the body.
 * Dropped requests are answered by the error contract.
 * @throws FlowConfigError for options that cannot be right.
 *
 * @example
 * const limit = flowControl(flow, { classify: (req) => ({ fairnessId: tenantOf(req), priority: 0 }) });
 * createServer((req, res) => limit(req, res, (error) => (error ? fail(res, error) : handle(req, res)))).listen(8080);
 */
export function flowControl<Req extends NodeRequest = NodeRequest>(
  flow: AdapterGate<HttpFlowRequest<NodeRequest>>,
  options: FlowControlOptions<Req> = {},
): FlowControlMiddleware<Req> {
  const control = new HttpFlowControl<Req, NodeRequest>(flow, options);
  return function flowControlMiddleware(req: WithFlow<Req>, res, next) {
    const verdict = control.judge(req, new NodeExchange<NodeRequest>(req, res, req, req.flow));
    if ('then' in verdict) void verdict.then((awaited) => follow(awaited, req, res, next));
    else follow(verdict, req, res, next);
  };
}

function follow(verdict: Verdict, req: WithFlow<NodeRequest>, res: NodeResponse, next: (error?: unknown) => void): void {
  switch (verdict.type) {
    case 'pass':
      if (verdict.flow !== undefined) {
        req.flow = verdict.flow;
        setQueueDuration(res, verdict.flow);
      }
      next();
      return;
    case 'reject':
      respond(req, res, verdict.response);
      return;
    case 'fail':
      next(verdict.error);
      return;
    case 'gone':
      // For whoever logs responses: not the 200 that it would have been.
      if (!res.headersSent) res.statusCode = 503;
  }
}
