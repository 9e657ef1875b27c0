/** Calls that a request of the host causes: they find its flow where the adapter has left it, and end with it. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Hono } from 'hono';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowControl, type RequestContext } from '../../src/adapters/hono/index.js';
import { families } from '../../src/adapters/http/index.js';
import { flowFetch } from '../../src/fetch/index.js';
import { concurrencyDetector, FlowController } from '../../src/index.js';
import { until } from '../integration/support/until.js';
import { gated } from './flow.js';
import { hang, startModelServer } from './model-server.js';

const chat: RequestInit = { method: 'POST', body: JSON.stringify({ model: 'llama', messages: [] }) };

/** A gateway whose handler calls `url` with nothing but the body. */
async function gateway(handlerInit: RequestInit = {}) {
  const server = await startModelServer();
  const context = new AsyncLocalStorage<RequestContext>();
  const { flow, fetch } = gated({ context });
  const door = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 8 }) });
  const classify = ({ req }: { req: { header(name: string): string | undefined } }) => ({
    fairnessId: req.header('x-tenant') ?? 'nobody',
    priority: 5,
    sessionId: 'session-1',
  });
  const app = new Hono();
  app.onError((error, c) => c.text(`${error.name}: ${error.message}`, 500));
  app.post('/', flowControl(door, { context, classify }), async (c) => {
    const body = JSON.stringify(await c.req.json());
    return fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body, ...handlerInit });
  });
  return { app, server, flow, context, door };
}

describe('a call inside a request', () => {
  it('belongs to the flow and the session of its request', async () => {
    const { app, flow } = await gateway();
    const dispatched: unknown[] = [];
    flow.on('dispatched', ({ lease, item }) => {
      const { sessionId } = item.request as { sessionId?: string };
      dispatched.push({ fairnessId: lease.fairnessId, priority: lease.priority, sessionId });
    });
    const answers = ['acme', 'zeta'].map(async (tenant) =>
      (await app.request('/', { ...chat, headers: { 'x-tenant': tenant } })).json(),
    );
    expect(await Promise.all(answers)).toMatchObject([{ object: 'chat.completion' }, { object: 'chat.completion' }]);
    expect(dispatched).toEqual(
      ['acme', 'zeta'].map((fairnessId) => ({ fairnessId, priority: 5, sessionId: 'session-1' })),
    );
  });

  it('is called off when the client of its request leaves, while it waits and while it is served', async () => {
    const { app, server, flow } = await gateway();
    server.behave = hang;
    const clients = [new AbortController(), new AbortController()];
    const answers = clients.map(({ signal }) => app.request('/', { ...chat, signal }));
    await until('one is served and one waits', () => server.asked.length === 1 && flow.stats().waiting === 1);
    clients[1]?.abort();
    await until('nobody waits', () => flow.stats().waiting === 0);
    expect(flow.stats().inFlight).toBe(1);
    clients[0]?.abort();
    await until('no seat is taken', () => flow.stats().inFlight === 0);
    await until('the server hears of it', () => server.asked[0]?.wasLeft === true);
    await Promise.allSettled(answers);
    expect(flow.stats().outcomes.EvictedContextCancelled).toBe(1);
  });

  it('is called off by a signal of its own as well, whose reason it gets', async () => {
    const own = new AbortController();
    const { app, server, flow } = await gateway({ signal: own.signal });
    server.behave = hang;
    const answer = app.request('/', chat);
    await until('it is served', () => server.asked.length === 1);
    own.abort(new Error('a limit of the handler'));
    expect(await (await answer).text()).toBe('Error: a limit of the handler');
    expect(flow.stats().inFlight).toBe(0);
  });
});

describe('a call inside a request that has a seat of the same controller', () => {
  /** `own` is in front of the handler, and asked again by what the handler calls. */
  async function reentrant(
    options: { reentrant?: 'share' | 'reject'; maxConcurrency?: number; byFamily?: boolean } = {},
  ) {
    const { maxConcurrency = 1, byFamily = false, ...given } = options;
    const server = await startModelServer();
    const context = new AsyncLocalStorage<RequestContext>();
    const flow = new FlowController({ maxConcurrency });
    const agents = families();
    const gate = byFamily ? agents.gate(flow) : flow;
    const fetch = flowFetch(gate as typeof flow, { context, ...given });
    const app = new Hono();
    const answers: Response[] = [];
    const classify = () => ({ fairnessId: 'acme', sessionId: 's' });
    app.post('/', flowControl(byFamily ? agents.gate(flow) : flow, { context, classify }), async () => {
      const answer = await fetch(`${server.url}/v1/chat/completions`, chat);
      answers.push(answer);
      return new Response(await answer.text(), { status: answer.status });
    });
    return { app, flow, context, fetch, url: server.url };
  }

  it('is told at once that it might wait for itself, by whichever gate', async () => {
    for (const byFamily of [false, true]) {
      const { app, flow } = await reentrant({ byFamily });
      const answer = await app.request('/', chat);
      expect(answer.status).toBe(429);
      expect(await answer.text()).toContain('it is part of a request that holds a seat already');
      await until('no seat is taken', () => flow.stats().inFlight === 0);
    }
  });

  it('goes where there is a seat now', async () => {
    const { app, flow } = await reentrant({ maxConcurrency: 2 });
    expect((await app.request('/', chat)).status).toBe(200);
    expect(flow.stats().dispatched).toBe(2);
  });

  it('goes in the seat of its request with reentrant: share, and leaves that seat alone', async () => {
    const { app, flow } = await reentrant({ reentrant: 'share' });
    expect(await (await app.request('/', chat)).json()).toMatchObject({ object: 'chat.completion' });
    expect(flow.stats()).toMatchObject({ dispatched: 1, waiting: 0 });
    await until('no seat is taken', () => flow.stats().inFlight === 0);
  });

  it('waits as any other once its request has given the seat back', async () => {
    const { flow, context, fetch, url } = await reentrant();
    const held = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'acme' });
    const other = await Promise.race([flow.enqueue({ byteSize: 1 }, { fairnessId: 'acme' }), held]);
    if (held.type !== 'Dispatched' || other !== held) throw new Error('two seats');
    const { lease } = held;
    lease.release();
    const cause = { fairnessId: 'acme', priority: 0, lease, gate: flow, signal: new AbortController().signal };
    const asked = context.run(cause, () => fetch(`${url}/v1/chat/completions`, chat));
    await until('it waits', () => flow.stats().waiting === 1);
    await flow.close();
    expect((await asked).status).toBe(500);
  });
});

describe('a call that is skipped', () => {
  it('goes to the fetch of the platform as it came, also where the flow has taken its place', async () => {
    const platform = globalThis.fetch;
    onTestFinished(() => {
      globalThis.fetch = platform;
    });
    const seen: unknown[][] = [];
    globalThis.fetch = async (...call) => {
      seen.push(call);
      return new Response('from the platform');
    };
    const context = new AsyncLocalStorage<RequestContext>();
    const { flow, fetch } = gated({ context, skip: () => context.getStore() === undefined });
    globalThis.fetch = fetch;
    const init = { headers: { 'x-gateway-inference-fairness-id': 'kept' } };
    expect(await (await globalThis.fetch('http://elsewhere/', init)).text()).toBe('from the platform');
    expect(seen[0]?.[1]).toBe(init);
    expect(flow.stats().dispatched).toBe(0);

    await context.run({ fairnessId: 'acme', priority: 0, signal: new AbortController().signal }, () =>
      globalThis.fetch('http://model/'),
    );
    expect([seen.length, flow.stats().dispatched]).toEqual([2, 1]);
  });

  it('goes to the fetch of the options, and none is skipped by a promise', async () => {
    const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
    const fetch = async (): Promise<Response> => new Response('from the option');
    await flowFetch(flow, { fetch, skip: ({ url }) => url.endsWith('/models') })('http://model/v1/models');
    expect(flow.stats().dispatched).toBe(0);
    await flowFetch(flow, { fetch, skip: (async () => true) as never })('http://model/');
    expect(flow.stats().dispatched).toBe(1);
  });
});
