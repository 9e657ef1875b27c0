import { AsyncLocalStorage } from 'node:async_hooks';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import express5, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import express4 from 'express4';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowControl, type RequestContext } from '../../../src/adapters/express/index.js';
import { concurrencyDetector, FlowController } from '../../../src/index.js';
import { until } from '../../integration/support/until.js';

function controller(maxConcurrency = 1): FlowController {
  return new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency }) });
}

async function serve(app: Express): Promise<string> {
  app.set('env', 'test');
  const server = http.createServer(app);
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

describe.each([
  ['Express 4', express4],
  ['Express 5', express5],
])('%s', (_, express) => {
  it('has its context behind the parsers, too', async () => {
    const context = new AsyncLocalStorage<RequestContext>();
    const app = express();
    app.use(
      flowControl(controller(), {
        context,
        classify: (req) => ({ fairnessId: req.get('x-tenant') ?? 'nobody', priority: 0 }),
      }),
    );
    app.use(express.json({ limit: '10mb' }));
    app.post('/', (req, res) => {
      const { fairnessId } = context.getStore() ?? {};
      res.json({ fairnessId, length: req.body.prompt.length });
    });
    const url = await serve(app);
    const headers = { 'content-type': 'application/json' };
    const prompts = ['a', 'b'.repeat(200_000)];
    const answers = prompts.map(async (prompt) =>
      (
        await fetch(url, {
          method: 'POST',
          headers: { ...headers, 'x-tenant': prompt.slice(0, 1) },
          body: JSON.stringify({ prompt }),
        })
      ).json(),
    );
    expect(await Promise.all(answers)).toEqual([
      { fairnessId: 'a', length: 1 },
      { fairnessId: 'b', length: 200_000 },
    ]);
  });

  it('leaves the body to the parsers behind it', async () => {
    const app = express();
    app.use(flowControl(controller()));
    app.use(express.json({ limit: '10mb' }));
    app.post('/', (req, res) => void res.json({ length: req.body.prompt.length }));
    const url = await serve(app);
    const answers = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const response = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ prompt: 'x'.repeat(500_000) }),
        });
        return response.json();
      }),
    );
    expect(answers).toEqual(Array.from({ length: 4 }, () => ({ length: 500_000 })));
  });

  it('may stand in front of one route, and sees what was found out before', async () => {
    const app = express();
    const authenticate: RequestHandler = (req, res, next) => {
      res.locals.tenant = req.get('authorization');
      next();
    };
    const limit = flowControl<express5.Request>(controller(), {
      classify: (req) => ({ fairnessId: String(req.res?.locals.tenant), priority: 7 }),
    });
    app.post(
      '/v1',
      authenticate,
      limit,
      (req, res) => void res.json([req.flow?.lease.fairnessId, req.flow?.lease.priority]),
    );
    app.get('/free', (req, res) => void res.json(req.flow ?? 'free'));
    const url = await serve(app);
    expect(await (await fetch(`${url}/v1`, { method: 'POST', headers: { authorization: 'tenant-a' } })).json()).toEqual(
      ['tenant-a', 7],
    );
    expect(await (await fetch(`${url}/free`)).json()).toBe('free');
  });

  it('an eviction that the handler lets through is answered by its reason', async () => {
    const flow = controller();
    const app = express();
    app.use(flowControl(flow));
    app.get('/', (req, _res, next) => {
      const reason = Object.assign(new Error('evicted'), {
        status: 429,
        headers: { 'x-llm-d-request-dropped-reason': 'evicted-priority' },
      });
      req.flow!.lease.abort(reason);
      next(req.flow!.signal.reason);
    });
    const response = await fetch(await serve(app));
    expect(response.status).toBe(429);
    expect(response.headers.get('x-llm-d-request-dropped-reason')).toBe('evicted-priority');
    await until('the lease is released', () => flow.stats().inFlight === 0);
  });

  it('an error handler gets the drop, and may answer in its own way', async () => {
    const flow = controller();
    await flow.close();
    const app = express();
    app.use(flowControl(flow, { onDrop: 'throw', contract: 'llm-d', random: () => 0 }));
    const answer: ErrorRequestHandler = (error, _req, res, _next) => {
      res.status(error.status).set(error.headers).json({ mine: error.code, type: error.outcome });
    };
    app.use(answer);
    const response = await fetch(await serve(app));
    expect(response.status).toBe(503);
    expect(response.headers.get('content-type')).toContain('application/json');
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await response.json()).toEqual({ mine: 'ERR_FLOW_SHUTTING_DOWN', type: 'RejectedOther' });
  });
});
