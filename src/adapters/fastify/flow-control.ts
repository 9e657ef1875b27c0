/** Flow control as a Fastify plugin: an `onRequest` hook, which runs before any body is parsed. */
import type { FastifyReply, FastifyRequest, onRequestHookHandler, preValidationHookHandler } from 'fastify';
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl, type Verdict } from '../http/http-flow-control.js';
import type { RequestFlow } from '../http/request-flow.js';
import type { HttpErrorResponse } from '../http/to-http-response.js';
import { NodeExchange } from '../node/node-exchange.js';
import type { NodeRequest } from '../node/node-request.js';
import { setFlowHeaders } from '../node/respond.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `flowControl`. Undefined at run time where it is not registered, and on requests that it skipped. */
    flow: RequestFlow;
  }
}

/** The part of a Fastify instance that is used, whatever its server. */
interface FastifyHost {
  hasRequestDecorator(name: string): boolean;
  decorateRequest(name: 'flow'): unknown;
  addHook(name: 'onRequest', hook: onRequestHookHandler): unknown;
  addHook(name: 'preValidation', hook: preValidationHookHandler): unknown;
}

/** For `app.register`. */
export type FlowControlPlugin = (instance: FastifyHost, options: object, done: (error?: Error) => void) => void;

/**
 * A plugin that holds requests until they are dispatched, on the instance that registers it and all within. Handlers
 * find `request.flow` with the lease and a signal that aborts when the client leaves; the lease is released at the end
 * of the response. Dropped requests are answered by the error contract, or go to the error handler (`onDrop: 'throw'`).
 * @throws FlowConfigError for options that cannot be right.
 * @example app.register(flowControl(flow, { classify: (request) => ({ fairnessId: request.tenant, priority: 0 }) }));
 */
export function flowControl<Req extends FastifyRequest = FastifyRequest>(
  flow: AdapterGate<HttpFlowRequest<NodeRequest>>,
  options: FlowControlOptions<Req> = {},
): FlowControlPlugin {
  const control = new HttpFlowControl<Req, NodeRequest>(flow, options);
  /** Methods whose requests have a body, which is parsed in between. */
  const entered = new WeakMap<FastifyRequest, RequestFlow>();

  function flowControlHook(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
    const verdict = control.judge(request as Req, new FastifyExchange(request, reply));
    if ('then' in verdict) void verdict.then((awaited) => follow(awaited, request, reply, done));
    else follow(verdict, request, reply, done);
  }

  function follow(verdict: Verdict, request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) {
    switch (verdict.type) {
      case 'pass':
        if (verdict.flow === undefined) return done();
        request.flow = verdict.flow;
        // It is set on reply.raw and not on the reply, because handlers that stream write to reply.raw.
        setFlowHeaders(reply.raw, verdict.flow);
        if (control.context !== undefined) entered.set(request, verdict.flow);
        return control.enter(verdict.flow, done);
      case 'reject':
        return send(reply, verdict.response);
      case 'fail':
        return done(verdict.error as Error);
      case 'gone':
        // Nothing is answered. It is for programs that log responses; otherwise they would log 200.
        if (!reply.raw.headersSent) reply.code(503);
        reply.hijack();
    }
  }

  /** A body is parsed by events of its socket, which know nothing of the request's context. */
  function enterAgainHook(request: FastifyRequest, _: FastifyReply, done: () => void): void {
    const flow = entered.get(request);
    if (flow === undefined) done();
    else control.enter(flow, done);
  }

  function flowControlPlugin(instance: FastifyHost, _: object, done: () => void): void {
    if (!instance.hasRequestDecorator('flow')) instance.decorateRequest('flow');
    instance.addHook('onRequest', flowControlHook);
    if (control.context !== undefined) instance.addHook('preValidation', enterAgainHook);
    done();
  }
  // As fastify-plugin does it: the hook is for the instance that registers the plugin, not for a child of it.
  return Object.assign(flowControlPlugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'headgate',
    [Symbol.for('plugin-meta')]: { name: 'headgate', fastify: '5.x' },
  });
}

class FastifyExchange extends NodeExchange<NodeRequest> {
  private readonly reply: FastifyReply;

  constructor(request: FastifyRequest, reply: FastifyReply) {
    super(request.raw, reply.raw, request.raw, request.flow);
    this.reply = reply;
  }

  protected override answer(response: HttpErrorResponse): void {
    send(this.reply, response);
  }
}

function send(reply: FastifyReply, { status, headers, body }: HttpErrorResponse): void {
  reply.code(status).headers(headers).send(body);
}
