/** Flow control in front of a handler of node:http, node:http2, or any framework of `(req, res, next)`. */
import { FlowConfigError } from '../../index.js';
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl, type Verdict } from '../http/http-flow-control.js';
import type { RequestFlow, WithFlow } from '../http/request-flow.js';
import { NodeExchange } from './node-exchange.js';
import type { NodeRequest, NodeResponse } from './node-request.js';
import { respond, setFlowHeaders } from './respond.js';

/** `next()` runs the handler; `next(error)` is the host's error handling. Neither is called for a client that left. */
export type FlowControlMiddleware = (req: NodeRequest, res: NodeResponse, next: (error?: unknown) => void) => void;

/**
 * Middleware that holds a request until it is dispatched. The handler finds `req.flow`, or `flowOf(req)`, with the
 * lease and a signal that aborts when the client leaves; the lease is released when the response ends, however it ends.
 * Put it before anything that reads the body. Dropped requests are answered by the error contract.
 * @throws FlowConfigError for options that cannot be right.
 * @example
 * const limit = flowControl(flow, { classify: (req) => ({ fairnessId: tenantOf(req), priority: 0 }) });
 * createServer((req, res) => limit(req, res, (error) => (error ? fail(res, error) : handle(req, res)))).listen(8080);
 */
export function flowControl<Req extends NodeRequest = NodeRequest>(
  flow: AdapterGate<HttpFlowRequest<NodeRequest>>,
  options: FlowControlOptions<Req> = {},
): FlowControlMiddleware {
  const control = new HttpFlowControl<Req, NodeRequest>(flow, options);

  function follow(verdict: Verdict, req: WithFlow<NodeRequest>, res: NodeResponse, next: (error?: unknown) => void) {
    switch (verdict.type) {
      case 'pass':
        if (verdict.flow === undefined) return next();
        req.flow = verdict.flow;
        setFlowHeaders(res, verdict.flow);
        return control.enter(verdict.flow, next);
      case 'reject':
        return respond(req, res, verdict.response);
      case 'fail':
        return next(verdict.error);
      case 'gone':
        // It is for programs that log responses; otherwise they would log 200.
        if (!res.headersSent) res.statusCode = 503;
    }
  }

  return function flowControlMiddleware(req: WithFlow<NodeRequest>, res, next) {
    const verdict = control.judge(req as Req, new NodeExchange<NodeRequest>(req, res, req, req.flow));
    if ('then' in verdict) void verdict.then((awaited) => follow(awaited, req, res, next));
    else follow(verdict, req, res, next);
  };
}

/** What `req.flow` is, for hosts without a type for it. @throws FlowConfigError when no flow control stands before */
export function flowOf(req: NodeRequest): RequestFlow {
  const { flow }: WithFlow<NodeRequest> = req;
  if (flow !== undefined) return flow;
  const expected = 'a request that flowControl let pass with a lease';
  throw new FlowConfigError('flowOf', [{ path: 'req.flow', expected, got: 'nothing' }]);
}
