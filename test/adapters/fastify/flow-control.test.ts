import { AsyncLocalStorage } from 'node:async_hooks';
import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowControl, type RequestContext } from '../../../src/adapters/fastify/index.js';
import { FlowConfigError, FlowControlError, inFlightEviction } from '../../../src/index.js';
import { rawConnection } from '../../integration/support/clients.js';
import { countingGate } from '../../integration/support/counting-gate.js';
import { deferred, until } from '../../integration/support/until.js';

function application(): FastifyInstance {
  const app = fastify();
  onTestFinished(() => void app.close());
  return app;
}

async function serve(app: FastifyInstance): Promise<{ port: number; url: string }> {
  await app.listen({ port: 0 });
  onTestFinished(() => app.server.closeAllConnections());
  const { port } = app.server.address() as AddressInfo;
  return { port, url: `http://localhost:${port}` };
}

describe('the plugin', () => {
  it('leaves the body to the parsers behind it', async () => {
    const app = application();
    app.register(flowControl(countingGate(1)));
    app.post('/', { bodyLimit: 1e6 }, async (request) => ({
      length: (request.body as { prompt: string }).prompt.length,
    }));
    const { url } = await serve(app);
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ prompt: 'x'.repeat(500_000) });
    const answers = Array.from({ length: 4 }, async () => (await fetch(url, { method: 'POST', headers, body })).json());
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 4 }, () => ({ length: 500_000 })));
  });

  it('has its context behind the parsers, too', async () => {
    const context = new AsyncLocalStorage<RequestContext>();
    const app = application();
    const classify = ({ headers }: { headers: Record<string, unknown> }) => ({
      fairnessId: String(headers['x-tenant']),
      priority: 0,
    });
    app.register(flowControl(countingGate(1), { context, classify }));
    app.post('/', async (request) => {
      const { fairnessId } = context.getStore() ?? {};
      return { fairnessId, length: (request.body as { prompt: string }).prompt.length };
    });
    const { url } = await serve(app);
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

  it('runs before a body is parsed: what is dropped was not', async () => {
    const app = application();
    let parsed = 0;
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => {
      parsed += 1;
      done(null, body);
    });
    const gate = countingGate(1);
    await gate.flow.close();
    app.register(flowControl(gate, { contract: 'llm-d' }));
    app.post('/', async () => 'ok');
    expect((await app.inject({ method: 'POST', url: '/', payload: 'hello' })).statusCode).toBe(503);
    expect(parsed).toBe(0);
  });

  it('is for the instance that registers it, and all within', async () => {
    const app = application();
    const gate = countingGate(1);
    app.get('/free', async (request) => String(request.flow));
    app.register((v1, _options, done) => {
      v1.register(
        flowControl(gate, { classify: (request) => ({ fairnessId: `${request.headers.authorization}`, priority: 3 }) }),
      );
      v1.get('/v1', async ({ flow }) => [flow!.lease.fairnessId, flow!.lease.priority]);
      v1.register((inner, _innerOptions, innerDone) => {
        inner.get('/inner', async ({ flow }) => flow!.lease.fairnessId);
        innerDone();
      });
      done();
    });
    expect((await app.inject('/free')).body).toBe('undefined');
    expect((await app.inject({ url: '/v1', headers: { authorization: 'tenant-a' } })).json()).toEqual(['tenant-a', 3]);
    expect((await app.inject({ url: '/inner', headers: { authorization: 'tenant-b' } })).body).toBe('tenant-b');
    await until('the leases are released', () => gate.flow.stats().inFlight === 0);
    expect(gate.releases).toEqual([1, 1]);
  });

  it('a route may opt out by its config', async () => {
    const app = application();
    const gate = countingGate(1);
    app.register(flowControl(gate, { skip: ({ routeOptions }) => 'isFree' in routeOptions.config }));
    app.get('/health', { config: { isFree: true } as object }, async (request) => String(request.flow));
    app.get('/', async (request) => String(request.flow?.queuedMs));
    expect((await app.inject('/health')).body).toBe('undefined');
    expect((await app.inject('/')).body).not.toBe('undefined');
    expect(gate.releases).toHaveLength(1);
  });

  it('may be there twice: two controllers give a lease each, the same gives one', async () => {
    const app = application();
    const [first, second] = [countingGate(1), countingGate(1)];
    app.register(flowControl(first));
    app.register(flowControl(first));
    app.register(flowControl(second, { classify: (request) => request.flow!.lease }));
    app.get('/', async () => 'ok');
    expect((await app.inject('/')).body).toBe('ok');
    await until('the leases are released', () => first.flow.stats().inFlight + second.flow.stats().inFlight === 0);
    expect([first.releases, second.releases]).toEqual([[1], [1]]);
  });

  it('works with inject, which has no sockets, also for requests that wait', async () => {
    const app = application();
    const gate = countingGate(1);
    const end = deferred();
    app.register(flowControl(gate));
    app.post('/', async (request) => {
      if (gate.releases.length === 1) await end.promise;
      return request.body;
    });
    const payload = { prompt: 'x'.repeat(100_000) };
    const inject = async () => app.inject({ method: 'POST', url: '/', payload });
    const answers = [inject(), inject()];
    await until('one runs and one waits', () => gate.flow.stats().inFlight === 1 && gate.flow.stats().waiting === 1);
    end.resolve();
    for (const answer of await Promise.all(answers)) expect(answer.json()).toEqual(payload);
    await until('the leases are released', () => gate.flow.stats().inFlight === 0);
    expect(gate.releases).toEqual([1, 1]);
  });

  it('checks its options when it is made', () => {
    expect(() => flowControl(countingGate(1), { trsut: true } as object)).toThrow(FlowConfigError);
  });
});

describe('hooks and handlers around it', () => {
  it('onSend sees drops, and the error handler gets them with onDrop throw', async () => {
    const gate = countingGate(1);
    await gate.flow.close();
    const app = application();
    const sent: unknown[] = [];
    app.addHook('onSend', async (_request, reply, payload) => {
      sent.push([reply.statusCode, typeof payload]);
      return payload;
    });
    app.register((answered, _options, done) => {
      answered.register(flowControl(gate));
      answered.get('/answered', async () => 'ok');
      done();
    });
    app.register((thrown, _options, done) => {
      thrown.setErrorHandler<FlowControlError>((error, _request, reply) =>
        reply.code(error.status).headers(error.headers).send({ mine: error.code }),
      );
      thrown.register(flowControl(gate, { onDrop: 'throw', contract: 'llm-d', random: () => 0 }));
      thrown.get('/thrown', async () => 'ok');
      done();
    });
    expect((await app.inject('/answered')).json()).toMatchObject({ code: 'ERR_FLOW_SHUTTING_DOWN' });
    expect(sent).toEqual([[500, 'string']]);
    const { statusCode, headers, ...thrown } = await app.inject('/thrown');
    expect(statusCode).toBe(503);
    expect(headers['retry-after']).toBe('1');
    expect(thrown.json()).toEqual({ mine: 'ERR_FLOW_SHUTTING_DOWN' });
  });

  it('nothing behind it runs for a client that left while it waited', async () => {
    const app = application();
    const gate = countingGate(1);
    const ran: string[] = [];
    const errors: unknown[] = [];
    app.register(flowControl(gate, { onDrop: 'throw' }));
    app.addHook('onRequest', async (request) => void ran.push(request.url));
    app.addHook('onError', async (_request, _reply, error) => void errors.push(error));
    app.get(
      '/*',
      (request) => new Promise((resolve) => request.flow!.signal.addEventListener('abort', resolve, { once: true })),
    );
    const { port } = await serve(app);
    const [first, second] = [rawConnection(port), rawConnection(port)];
    first.socket.write('GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until('the first runs', () => ran.length === 1);
    second.socket.write('GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until('the second waits', () => gate.flow.stats().waiting === 1);
    second.socket.destroy();
    await until('the second is gone', () => gate.flow.stats().waiting === 0);
    first.socket.destroy();
    await until('the first is gone', () => gate.flow.stats().inFlight === 0);
    expect(ran).toEqual(['/first']);
    expect(errors).toEqual([]);
  });

  it('a handler that streams to reply.raw holds its lease to the end', async () => {
    const app = application();
    const gate = countingGate(1);
    const end = deferred();
    app.register(flowControl(gate));
    app.get('/', async (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
      reply.raw.write('data: 1\n\n');
      await end.promise;
      reply.raw.end('data: [DONE]\n\n');
    });
    const { url } = await serve(app);
    const response = await fetch(url);
    expect(response.headers.get('x-llm-d-flow-queue-duration-ms')).toBe('0');
    expect(gate.flow.stats().inFlight).toBe(1);
    end.resolve();
    expect(await response.text()).toBe('data: 1\n\ndata: [DONE]\n\n');
    await until('the lease is released', () => gate.flow.stats().inFlight === 0);
  });

  it('an eviction that the handler lets through is answered by its reason', async () => {
    const app = application();
    const gate = countingGate(1, { eviction: inFlightEviction() });
    app.register(flowControl(gate, { trust: true, objectives: { batch: -10, premium: 100 } }));
    app.get('/', async ({ flow }) => {
      if (flow!.lease.priority === 100) return 'premium';
      return new Promise((_, reject) =>
        flow!.signal.addEventListener('abort', () => reject(flow!.signal.reason), { once: true }),
      );
    });
    const { url } = await serve(app);
    const batch = fetch(url, { headers: { 'x-gateway-inference-objective': 'batch' } });
    await until('batch runs', () => gate.flow.stats().inFlight === 1);
    const premium = await fetch(url, { headers: { 'x-gateway-inference-objective': 'premium' } });
    expect(await premium.text()).toBe('premium');
    expect((await batch).status).toBe(429);
    expect((await batch).headers.get('x-llm-d-request-dropped-reason')).toBe('evicted-priority');
    expect(await (await batch).json()).toMatchObject({ code: 'ERR_FLOW_EVICTED' });
  });
});

it('a FlowControlError that a handler throws is answered unaided', async () => {
  const app = application();
  const drop = {
    type: 'RejectedCapacity',
    reason: 'global-max-requests',
    fairnessId: 'a',
    priority: 0,
    queuedMs: 0,
  } as const;
  app.get('/', async () => {
    throw new FlowControlError(drop);
  });
  const { statusCode, headers } = await app.inject('/');
  expect(statusCode).toBe(429);
  expect(headers['retry-after']).toBe('1');
});
