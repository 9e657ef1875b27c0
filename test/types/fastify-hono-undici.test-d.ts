import http2 from 'node:http2';
import fastify, { type FastifyRequest } from 'fastify';
import { type Context, Hono } from 'hono';
import { Agent, type Dispatcher } from 'undici';
import { describe, expectTypeOf, it } from 'vitest';
import { flowControl as fastifyFlowControl } from '../../src/adapters/fastify/index.js';
import { flowControl as honoFlowControl } from '../../src/adapters/hono/index.js';
import type { RequestFlow } from '../../src/adapters/node/index.js';
import { type FlowContext, flowControl as undiciFlowControl } from '../../src/adapters/undici/index.js';
import type { FlowController, FlowGate } from '../../src/index.js';

declare const flow: FlowController;
declare const gate: FlowGate;

describe('adapters', () => {
  it('Fastify takes the plugin on any server, and options see its request', () => {
    const app = fastify();
    app.register(fastifyFlowControl(flow));
    app.register(fastifyFlowControl(gate, { skip: (request) => request.routeOptions.url === '/health' }));
    fastify({ http2: true }).register(fastifyFlowControl(flow));
    fastify({ serverFactory: (handler) => http2.createServer(handler as never) as never }).register(
      fastifyFlowControl(flow),
    );
    app.get('/', (request) => {
      expectTypeOf(request.flow).toEqualTypeOf<RequestFlow>();
      return {};
    });
    expectTypeOf<FastifyRequest['flow']>().toEqualTypeOf<RequestFlow>();
  });

  it('options may see requests of the host’s own type', () => {
    interface Authenticated extends FastifyRequest {
      tenant: string;
    }
    fastify().register(fastifyFlowControl<Authenticated>(flow, { classify: ({ tenant }) => ({ fairnessId: tenant }) }));
    fastify().register(
      fastifyFlowControl(flow, { classify: (request: Authenticated) => ({ fairnessId: request.tenant }) }),
    );
  });

  it('Hono takes the middleware, and options see the context', () => {
    interface Env {
      Variables: { tenant: string };
    }
    const app = new Hono<Env>();
    app.use(honoFlowControl(flow));
    app.use(
      '/v1/*',
      honoFlowControl<Context<Env>>(gate, { classify: (c) => ({ fairnessId: c.get('tenant'), priority: 1 }) }),
    );
    app.get('/', (c) => {
      expectTypeOf(c.var.flow).toEqualTypeOf<RequestFlow>();
      expectTypeOf(c.get('flow')).toEqualTypeOf<RequestFlow>();
      expectTypeOf(c.get('tenant')).toEqualTypeOf<string>();
      return c.text('ok');
    });
  });

  it('undici composes the interceptor, and options see the dispatch', () => {
    const agent = new Agent().compose(
      undiciFlowControl(flow, {
        classify: ({ path, origin }) => ({ fairnessId: `${origin}${path}` }),
        onDrop: 'respond',
      }),
    );
    expectTypeOf(agent).toExtend<Dispatcher>();
    expectTypeOf<FlowContext['flow']>().toEqualTypeOf<RequestFlow | undefined>();
  });

  it('options are closed', () => {
    // @ts-expect-error: a misspelt option
    fastifyFlowControl(flow, { trsut: true });
    // @ts-expect-error: no such contract
    honoFlowControl(flow, { contract: 'rfc' });
    // @ts-expect-error: a misspelt option
    undiciFlowControl(flow, { onDrp: 'throw' });
  });
});
