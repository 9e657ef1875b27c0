/** Flow control as Koa middleware. The lease follows the response, because streamed bodies start after `next()`. */
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl, type Verdict } from '../http/http-flow-control.js';
import type { RequestFlow } from '../http/request-flow.js';
import { NodeExchange } from '../node/node-exchange.js';
import type { NodeRequest, NodeResponse } from '../node/node-request.js';
import { setFlowHeaders } from '../node/respond.js';

/** For `new Koa<WithFlowState, WithFlowState>()`. Undefined at run time on requests that `flowControl` has not seen. */
export interface WithFlowState {
  flow: RequestFlow;
}

/** The part of a Koa context that is used. */
export interface KoaContext {
  readonly req: NodeRequest;
  readonly res: NodeResponse;
  state: { flow?: RequestFlow };
  flow?: RequestFlow;
  status: number;
  body: unknown;
  readonly headerSent: boolean;
  set(headers: Record<string, string>): void;
}

export type KoaMiddleware = (ctx: KoaContext, next: () => Promise<unknown>) => Promise<unknown>;

/**
 * Middleware that holds a request until it is dispatched. Handlers find `ctx.flow` (and `ctx.state.flow`) with the
 * lease and a signal that aborts when the client leaves; the lease is released when the response ends, however it ends.
 * Put it before body parsers. Dropped requests are answered by the error contract, or throw with `onDrop: 'throw'`.
 * @throws FlowConfigError for options that cannot be right.
 * @example app.use(flowControl(flow, { classify: (ctx) => ({ fairnessId: ctx.state.user.tenant, priority: 0 }) }));
 */
export function flowControl<Ctx extends KoaContext = KoaContext>(
  flow: AdapterGate<HttpFlowRequest<NodeRequest>>,
  options: FlowControlOptions<Ctx> = {},
): KoaMiddleware {
  const control = new HttpFlowControl<Ctx, NodeRequest>(flow, options);

  /** No async function: its promise would be one more for each request (bench: http). */
  function follow(verdict: Verdict, ctx: KoaContext, next: () => Promise<unknown>): Promise<unknown> {
    switch (verdict.type) {
      case 'pass':
        if (verdict.flow === undefined) return next();
        ctx.flow = verdict.flow;
        ctx.state.flow = verdict.flow;
        setFlowHeaders(ctx.res, verdict.flow);
        return control.enter(verdict.flow, next);
      case 'reject':
        ctx.status = verdict.response.status;
        ctx.set({ ...verdict.response.headers });
        ctx.body = verdict.response.body;
        return Promise.resolve();
      case 'fail':
        return Promise.reject(verdict.error);
      case 'gone':
        // It is for programs that log responses; otherwise they would log 404.
        ctx.status = 503;
        return Promise.resolve();
    }
  }

  return function flowControlMiddleware(ctx, next) {
    const exchange = new NodeExchange<NodeRequest>(ctx.req, ctx.res, ctx.req, ctx.flow);
    const verdict = control.judge(ctx as Ctx, exchange);
    return 'then' in verdict ? verdict.then((awaited) => follow(awaited, ctx, next)) : follow(verdict, ctx, next);
  };
}
