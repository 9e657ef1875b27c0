import http from 'node:http';
import http2 from 'node:http2';
import express from 'express';
import Koa from 'koa';
import { describe, expectTypeOf, it } from 'vitest';
import { flowControl as expressFlowControl } from '../../src/adapters/express/index.js';
import { type KoaContext, flowControl as koaFlowControl, type WithFlowState } from '../../src/adapters/koa/index.js';
import {
  flowOf,
  type HttpFlowRequest,
  flowControl as nodeFlowControl,
  type RequestFlow,
  type WithFlow,
} from '../../src/adapters/node/index.js';
import { FlowController, type FlowGate, type Lease } from '../../src/index.js';

declare const flow: FlowController;
declare const gate: FlowGate;

describe('adapters', () => {
  it('Express takes the middleware, and knows its own request in options and req.flow in handlers', () => {
    const app = express();
    app.use(expressFlowControl(flow));
    app.use(expressFlowControl(gate, { skip: (req) => req.path === '/health' }));
    app.use(
      '/v1',
      expressFlowControl(flow, { classify: (req) => ({ fairnessId: req.get('authorization') ?? 'anonymous' }) }),
    );
    app.post('/v1', expressFlowControl<express.Request>(flow, { byteSize: (req) => req.ip?.length ?? 0 }), (req) => {
      expectTypeOf(req.flow).toEqualTypeOf<RequestFlow>();
      expectTypeOf(req.flow.lease).toEqualTypeOf<Lease>();
      expectTypeOf(req.flow.signal).toEqualTypeOf<AbortSignal>();
    });
  });

  it('Koa takes the middleware, and options see the context', () => {
    const app = new Koa();
    app.use(koaFlowControl(flow));
    app.use(
      koaFlowControl(flow, { classify: (ctx) => ({ fairnessId: String(ctx.req.headers.authorization), priority: 1 }) }),
    );
    app.use(koaFlowControl<Koa.Context>(flow, { skip: (ctx) => ctx.path === '/health' }));
    app.use((ctx) => {
      expectTypeOf(ctx.state.flow.signal).toBeAny();
    });
    const typed = new Koa<WithFlowState, WithFlowState>();
    typed.use(koaFlowControl(flow));
    typed.use((ctx) => {
      expectTypeOf(ctx.state.flow).toEqualTypeOf<RequestFlow>();
      expectTypeOf(ctx.flow).toEqualTypeOf<RequestFlow>();
    });
    expectTypeOf<Koa.Context>().toExtend<KoaContext>();
  });

  it('node:http and node:http2 take the middleware', () => {
    const limit = nodeFlowControl(flow, {
      classify: (req) => ({ fairnessId: req.headers['x-tenant']?.toString() ?? 'none' }),
    });
    http.createServer((req: WithFlow<http.IncomingMessage>, res) =>
      limit(req, res, () => expectTypeOf(req.flow).toEqualTypeOf<RequestFlow | undefined>()),
    );
    http.createServer((req, res) => limit(req, res, () => expectTypeOf(flowOf(req)).toEqualTypeOf<RequestFlow>()));
    http2.createServer((req, res) => limit(req, res, () => res.end()));
  });

  it('options may see requests of the host’s own type', () => {
    interface Authenticated extends express.Request {
      tenant: string;
    }
    interface Context extends Koa.Context {
      tenant: string;
    }
    express().use(expressFlowControl(flow, { classify: (req: Authenticated) => ({ fairnessId: req.tenant }) }));
    express().post(
      '/v1',
      expressFlowControl<Authenticated>(flow, { skip: ({ tenant }) => tenant === '' }),
      (_req, res) => void res.end(),
    );
    new Koa().use(koaFlowControl(flow, { classify: (ctx: Context) => ({ fairnessId: ctx.tenant }) }));
    nodeFlowControl(flow, {
      classify: (req: http.IncomingMessage & { tenant: string }) => ({ fairnessId: req.tenant }),
    });
  });

  it('take a controller that knows its requests', () => {
    const own: FlowController<HttpFlowRequest<express.Request>> = new FlowController<HttpFlowRequest<express.Request>>({
      saturationDetector: () => 0,
      defaultBand: {
        ordering: { type: 'own', compare: (a, b) => a.request.req.path.length - b.request.req.path.length },
      },
    });
    express().use(expressFlowControl(own));
    nodeFlowControl(own);
  });

  it('options are closed', () => {
    // @ts-expect-error: a misspelt option
    nodeFlowControl(flow, { trsut: true });
    // @ts-expect-error: no such contract
    nodeFlowControl(flow, { contract: 'rfc' });
  });
});
