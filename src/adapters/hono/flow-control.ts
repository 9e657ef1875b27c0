/** Flow control as Hono middleware. The lease follows the response, by events of Node or by its body. */
import type { Context, MiddlewareHandler, Next } from 'hono';
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl } from '../http/http-flow-control.js';
import type { RequestFlow } from '../http/request-flow.js';
import { bandHeadroomHeaders, type HttpErrorResponse, queueDurationHeaders } from '../http/to-http-response.js';
import type { NodeRequest, NodeResponse } from '../node/node-request.js';
import { showingLife } from '../web/begun-response.js';
import { type HonoExchange, HonoNodeExchange, HonoWebExchange } from './hono-exchange.js';

declare module 'hono' {
  interface ContextVariableMap {
    /** Set by `flowControl`. Undefined at run time without it in front, and on requests that it skipped. */
    flow: RequestFlow;
  }
}

/**
 * Middleware that holds a request until it is dispatched. Handlers find `c.var.flow` with the lease and a signal that
 * aborts when the client leaves; the lease is released when the response ends, however it ends. Put it before anything
 * that reads the body. Dropped requests are answered by the error contract, or throw with `onDrop: 'throw'`.
 * @throws FlowConfigError for options that cannot be right.
 * @example
 * app.use('/v1/*', flowControl(flow, { classify: (c) => ({ fairnessId: c.get('tenant'), priority: 0 }) }));
 */
export function flowControl<Ctx extends Context = Context>(
  flow: AdapterGate<HttpFlowRequest<Request>>,
  options: FlowControlOptions<Ctx> = {},
): MiddlewareHandler {
  const control = new HttpFlowControl<Ctx, Request>(flow, options);

  async function run(c: Context, next: Next, exchange: HonoExchange, own: RequestFlow): Promise<void> {
    c.set('flow', own);
    exchange.begin({ ...queueDurationHeaders(own), ...bandHeadroomHeaders(own.bandHeadroom) });
    try {
      const mayBeEnded = own.lease.isEvictable || (exchange.upload !== undefined && exchange.bodyBytes(1) > 0);
      if (mayBeEnded) await Promise.race([control.enter(own, next), evicted(c, exchange)]);
      else await control.enter(own, next);
    } catch (error) {
      // Hono turns errors into responses before they get here, except what is no Error.
      exchange.close?.();
      throw error;
    }
    exchange.finish?.();
  }

  return async function flowControlMiddleware(c: Context, next) {
    const exchange = exchangeOf(c);
    const answer = follow(c, next, exchange, control.judge(c as Ctx, exchange));
    if (!(exchange instanceof HonoWebExchange) || exchange.signs === undefined) return answer;
    const response = async (): Promise<Response> => (await answer) ?? c.res;
    const shown = await showingLife(response(), exchange);
    // Once it is sent, Hono takes the handler's own response too.
    if (exchange.hasBegunEarly) setTimeout(() => Object.assign(c, { finalized: false }));
    return shown;
  };

  async function follow(c: Context, next: Next, exchange: HonoExchange, judged: ReturnType<typeof control.judge>) {
    const verdict = await judged;
    if (verdict.type === 'pass') {
      if (verdict.flow === undefined) await next();
      else await run(c, next, exchange, verdict.flow);
      return;
    }
    exchange.close?.();
    if (verdict.type === 'fail') throw verdict.error;
    // It is for programs that log responses; otherwise they would log 404.
    return verdict.type === 'reject' ? responseOf(c, verdict.response) : c.body(null, 503);
  }
}

/** Bindings of @hono/node-server. */
interface NodeBindings {
  readonly incoming?: NodeRequest;
  readonly outgoing?: NodeResponse;
}

function exchangeOf(c: Context): HonoExchange {
  const { incoming, outgoing }: NodeBindings = c.env ?? {};
  if (incoming === undefined || outgoing === undefined || !('rawHeaders' in incoming)) return new HonoWebExchange(c);
  return new HonoNodeExchange(c, incoming, outgoing);
}

async function evicted(c: Context, exchange: HonoExchange): Promise<void> {
  c.res = responseOf(c, await exchange.evicted);
}

function responseOf(c: Context, { status, headers, body }: HttpErrorResponse): Response {
  return c.newResponse(body, { status: status as 429, headers: { ...headers } });
}
