/** Flow control as Hono middleware. The lease follows the response, by events of Node or by its body. */
import type { Context, MiddlewareHandler, Next } from 'hono';
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl } from '../http/http-flow-control.js';
import type { RequestFlow } from '../http/request-flow.js';
import { bandHeadroomHeaders, type HttpErrorResponse, queueDurationHeaders } from '../http/to-http-response.js';
import { NodeExchange } from '../node/node-exchange.js';
import type { NodeRequest, NodeResponse } from '../node/node-request.js';
import { setHeaders } from '../node/respond.js';
import { showingLife } from '../web/begun-response.js';
import { WebExchange, withoutFlowHeaders } from '../web/web-exchange.js';

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
 * @example app.use('/v1/*', flowControl(flow, { classify: (c) => ({ fairnessId: c.get('tenant'), priority: 0 }) }));
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
      const mayBeEnded = own.lease.isEvictable || ('upload' in exchange && exchange.bodyBytes(1) > 0);
      if (mayBeEnded) await Promise.race([control.enter(own, next), evicted(c, exchange)]);
      else await control.enter(own, next);
    } catch (error) {
      // Hono turns errors into responses before they get here, except what is no Error.
      exchange.close();
      throw error;
    }
    exchange.finish();
  }

  return async function flowControlMiddleware(c: Context, next) {
    const exchange = exchangeOf(c);
    const answer = follow(c, next, exchange, control.judge(c as Ctx, exchange));
    if (!(exchange instanceof HonoWebExchange) || exchange.signs === undefined) return answer;
    const response = answer.then((own) => own ?? c.res);
    const shown = await showingLife(response, exchange);
    // Once it is sent, Hono takes the handler's own response too.
    void exchange.early?.then(() => Object.assign(c, { finalized: false }));
    return shown;
  };

  async function follow(c: Context, next: Next, exchange: HonoExchange, judged: ReturnType<typeof control.judge>) {
    const verdict = await judged;
    if (verdict.type === 'pass') {
      if ('early' in exchange) await exchange.early;
      if (verdict.flow === undefined) await next();
      else await run(c, next, exchange, verdict.flow);
      return;
    }
    exchange.close();
    if (verdict.type === 'fail') throw verdict.error;
    // It is for programs that log responses; otherwise they would log 404.
    return verdict.type === 'reject' ? responseOf(c, verdict.response) : c.body(null, 503);
  }
}

type HonoExchange = HonoWebExchange | HonoNodeExchange;

/** On a fetch runtime: requests and responses are all that there is, and Hono's context holds them. */
class HonoWebExchange extends WebExchange {
  private readonly c: Context;

  constructor(c: Context) {
    super(c.req.raw, c.get('flow'));
    this.c = c;
  }

  /** By a middleware in front that did not wait any longer. */
  get isAnswered(): boolean {
    return this.c.finalized && this.early === undefined;
  }

  override stripHeaders(): void {
    super.stripHeaders();
    this.c.req.raw = this.req;
  }

  /** The handler has left its response in `c.res`. */
  finish(): void {
    const response = this.watched(this.c.res);
    if (response === this.c.res) return;
    this.c.res = undefined;
    this.c.res = response;
  }
}

/** On @hono/node-server: Node tells when a response is over, Hono writes it. */
class HonoNodeExchange extends NodeExchange<Request> {
  /** Resolves with an answer if the request was evicted, or its client sent nothing, before its handler responded. */
  readonly evicted: Promise<HttpErrorResponse>;
  private resolveEvicted: ((response: HttpErrorResponse) => void) | undefined = undefined;
  private readonly c: Context;

  constructor(c: Context, incoming: NodeRequest, outgoing: NodeResponse) {
    super(incoming, outgoing, c.req.raw, c.get('flow'));
    this.c = c;
    this.evicted = new Promise((resolve) => {
      this.resolveEvicted = resolve;
    });
  }

  /** The web's headers first: node-server derives them from Node's, and keeps what it once derived. */
  override stripHeaders(): void {
    const { req } = this.c;
    req.raw = withoutFlowHeaders(req.raw);
    super.stripHeaders();
  }

  /** Set on Node's response, because touching `c.res` would cost node-server's fast path. */
  begin(headers: Readonly<Record<string, string>>): void {
    if (!this.outgoing.headersSent) setHeaders(this.outgoing, headers);
  }

  /** Node tells by itself of the end of a response. */
  finish(): void {}
  close(): void {}

  protected override answer(response: HttpErrorResponse): void {
    this.resolveEvicted?.(response);
  }
}

/** Bindings of @hono/node-server. */
type NodeBindings = { readonly incoming?: NodeRequest; readonly outgoing?: NodeResponse };

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
