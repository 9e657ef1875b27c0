/** Flow control around handlers that take a Request and give a Response. The lease follows the response's body. */
import { FlowConfigError } from '../../index.js';
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl } from '../http/http-flow-control.js';
import type { RequestFlow } from '../http/request-flow.js';
import { bandHeadroomHeaders, type HttpErrorResponse, queueDurationHeaders } from '../http/to-http-response.js';
import { showingLife } from './begun-response.js';
import { WebExchange } from './web-exchange.js';

/** `request` is the one to read, without flow headers. `flow` is undefined where `flowControl` skipped it. */
export type WebHandler = (request: Request, flow: RequestFlow) => Response | PromiseLike<Response>;

/** Resolves with the handler's response, or with the answer of a drop. Rejects as the handler does. */
export type WebFlowControl = (request: Request, handler: WebHandler) => Promise<Response>;

const flows = new WeakMap<Request, RequestFlow>();

/**
 * Runs a handler once its request is dispatched, with the lease and a signal that aborts when the client leaves; the
 * lease is released when the response ends, however it ends. Call it before anything reads the body. Dropped requests
 * are answered by the error contract, or reject with `onDrop: 'throw'`.
 * @throws FlowConfigError for options that cannot be right.
 * @example
 * const inTurn = flowControl(flow, { classify: (request) => ({ fairnessId: tenantOf(request) }) });
 * export const POST = (request) => inTurn(request, async (request, { signal }) => respond(request, signal));
 */
export function flowControl(
  flow: AdapterGate<HttpFlowRequest<Request>>,
  options: FlowControlOptions<Request> = {},
): WebFlowControl {
  const control = new HttpFlowControl<Request, Request>(flow, options);
  return function inTurn(request, handler) {
    const exchange = new WebExchange(request, flows.get(request));
    const verdict = control.judge(request, exchange);
    return showingLife(answered(exchange, verdict, handler), exchange);
  };

  async function answered(exchange: WebExchange, judged: ReturnType<typeof control.judge>, handler: WebHandler) {
    const verdict = await judged;
    if (verdict.type === 'pass') {
      const own = verdict.flow;
      // Skipped, or inside a handler that has its lease already.
      if (own === undefined) return handler(exchange.req, exchange.flow as RequestFlow);
      return run(exchange, own, () => control.enter(own, () => handler(exchange.req, own)));
    }
    exchange.close();
    if (verdict.type === 'fail') throw verdict.error;
    // The client left. It is for programs that log responses.
    return verdict.type === 'reject' ? responseOf(verdict.response) : new Response(null, { status: 503 });
  }

  async function run(exchange: WebExchange, own: RequestFlow, handle: () => Response | PromiseLike<Response>) {
    flows.set(exchange.req, own);
    exchange.begin({ ...queueDurationHeaders(own), ...bandHeadroomHeaders(own.bandHeadroom) });
    try {
      if (!own.lease.isEvictable) return exchange.watched(await handle());
      return exchange.watched(await Promise.race([handle(), exchange.evicted.then(responseOf)]));
    } catch (error) {
      // The handler let the reason of the eviction through: that is for flow control to answer.
      if (own.lease.isEvicted && !exchange.req.signal.aborted)
        return exchange.watched(responseOf(await exchange.evicted));
      exchange.close();
      throw error;
    }
  }
}

/** Lease, signal and waiting time, inside a handler. @throws FlowConfigError when no `flowControl` stands before it */
export function flowOf(request: Request): RequestFlow {
  const flow = flowIn(request);
  if (flow !== undefined) return flow;
  const expected = 'the request that flowControl gave to its handler';
  throw new FlowConfigError('flowOf', [{ path: 'request', expected, got: 'another' }]);
}

/** Undefined on requests that were skipped. */
export const flowIn = (request: Request): RequestFlow | undefined => flows.get(request);

const responseOf = ({ status, headers, body }: HttpErrorResponse): Response => new Response(body, { status, headers });
