/** What a caller of `flowFetch` gets, and when the seat comes back. Against a model server on a real socket. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { headerValue } from '../../src/adapters/http/index.js';
import { elsewhere, type FetchCall, type FetchRequest, type FlowFetch, flowFetch } from '../../src/fetch/index.js';
import {
  concurrencyDetector,
  EndpointPool,
  FlowConfigError,
  FlowControlError,
  FlowController,
  type FlowControllerOptions,
  FlowEvictedError,
  inFlightEviction,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { until } from '../integration/support/until.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { expectComeBack } from '../support/come-back.js';
import { expectIdle, gated, type Setup } from './flow.js';
import {
  hang,
  inTurn,
  type ModelServer,
  refuse,
  sendText,
  serve,
  stall,
  startModelServer,
  think,
} from './model-server.js';

const chat = (more: object = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'llama', messages: [], ...more }),
});
const streamed = chat({ stream: true });

function urlOf(server: ModelServer): string {
  return `${server.url}/v1/chat/completions`;
}

/** Takes the only seat until the returned function is called. */
async function occupy({ fetch, flow }: Setup, server: ModelServer): Promise<() => Promise<void>> {
  server.behave = inTurn(stall, server.behave);
  const response = await fetch(urlOf(server), streamed);
  expect(flow.stats().inFlight).toBe(1);
  return async () => response.body?.cancel();
}

describe('a call that is dispatched', () => {
  it('gets the answer as it came, and the usage is told before the seat comes back', async () => {
    const server = await startModelServer();
    const setup = gated();
    const usages: object[] = [];
    setup.flow.on('released', ({ lease }) => usages.push(lease.usage));
    const response = await setup.fetch(urlOf(server), chat());
    expect(response).toMatchObject({ status: 200, ok: true, url: urlOf(server) });
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'served' } }] });
    await expectIdle(setup);
    expect(usages).toEqual([{ promptTokens: 7, completionTokens: 2 }]);
  });

  it('holds the seat until the last byte of a stream', async () => {
    const server = await startModelServer(stall);
    const setup = gated();
    const response = await setup.fetch(urlOf(server), streamed);
    const reader = response.body!.getReader();
    await reader.read();
    expect(setup.flow.stats().inFlight).toBe(1);
    sendText(server.asked[0]!, 'ved');
    server.asked[0]!.res.end();
    while (!(await reader.read()).done);
    await expectIdle(setup);
  });

  it('gives the seat back at once when there is no body', async () => {
    const server = await startModelServer(({ res }) => res.writeHead(204).end());
    const setup = gated();
    const response = await setup.fetch(urlOf(server), chat());
    expect([response.status, setup.flow.stats().inFlight]).toEqual([204, 0]);
  });

  it('gives the seat back when the body is cancelled, and the server hears of it', async () => {
    const server = await startModelServer(stall);
    const setup = gated();
    const response = await setup.fetch(urlOf(server), streamed);
    await response.body?.cancel();
    expect(setup.flow.stats().inFlight).toBe(0);
    await until('the server was left', () => server.asked[0]!.wasLeft);
  });

  it('gives the seat back when the answer breaks off', async () => {
    const server = await startModelServer((asked) => {
      stall(asked);
      setImmediate(() => asked.res.destroy());
    });
    const setup = gated();
    await expect((await setup.fetch(urlOf(server), streamed)).text()).rejects.toThrow();
    await expectIdle(setup);
  });

  it('gives the seat back when there is no connection', async () => {
    const setup = gated();
    await expect(setup.fetch('http://127.0.0.1:1/', chat())).rejects.toThrow('fetch failed');
    await expectIdle(setup);
  });

  it('gives the seat back when the caller aborts, before the answer and while it streams, with the reason of the caller', async () => {
    for (const behave of [hang, stall]) {
      const server = await startModelServer(behave);
      const setup = gated();
      const abort = new AbortController();
      const reason = new Error('the user closed the page');
      const call = setup
        .fetch(urlOf(server), { ...streamed, signal: abort.signal })
        .then((response) => response.text());
      await until('the server was asked', () => server.asked.length === 1);
      abort.abort(reason);
      await expect(call).rejects.toBe(reason);
      await expectIdle(setup);
      await until('the server was left', () => server.asked[0]!.wasLeft);
    }
  });

  it('breaks the answer off when nothing of it passes for too long, and not before', async () => {
    const server = await startModelServer(stall);
    const clock = new ManualClock();
    const setup = gated({ clock, timeouts: { idle: 1000 } });
    const reader = (await setup.fetch(urlOf(server), streamed)).body!.getReader();
    await reader.read();
    await clock.advance(999);
    sendText(server.asked[0]!, 'ved');
    await reader.read();
    await clock.advance(999);
    expect(setup.flow.stats().inFlight).toBe(1);
    await clock.advance(1);
    await expectIdle(setup);
    await expect(reader.read()).rejects.toMatchObject({ name: 'TimeoutError' });
    await until('the server was left', () => server.asked[0]!.wasLeft);
  });

  it('gives the seat back when nobody reads the answer, and counts it', async () => {
    const server = await startModelServer(stall);
    const setup = gated();
    await setup.fetch(urlOf(server), streamed);
    expect([setup.flow.stats().inFlight, setup.fetch.counts.unread]).toEqual([1, 0]);
    await until('the answer was collected', () => {
      collectGarbage();
      return setup.flow.stats().inFlight === 0;
    });
    expect(setup.fetch.counts.unread).toBe(1);
    await until('the server was left', () => server.asked[0]!.wasLeft);
  });

  it('can be collected once it has ended, also when the reason of its caller refers to it', async () => {
    const server = await startModelServer(stall);
    const setup = gated();
    async function leave(): Promise<WeakRef<Response>> {
      const abort = new AbortController();
      const response = await setup.fetch(urlOf(server), { ...streamed, signal: abort.signal });
      abort.abort({ response });
      return new WeakRef(response);
    }
    const answer = await leave();
    await expectIdle(setup);
    await until(
      'the answer was collected',
      () => {
        collectGarbage();
        return answer.deref() === undefined;
      },
      10_000,
    );
  });

  it('sends what it was given, but for the control headers', async () => {
    const server = await startModelServer();
    const { fetch } = gated();
    const headers = { authorization: 'Bearer k', 'x-gateway-inference-fairness-id': 'somebody' };
    await (await fetch(new Request(urlOf(server), { ...chat({ seed: 7 }), headers }))).text();
    await (await fetch(new URL(urlOf(server)), { ...chat({ seed: 7 }), headers })).text();
    for (const asked of server.asked) {
      expect(asked.body).toEqual({ model: 'llama', messages: [], seed: 7 });
      expect(asked.headers).toMatchObject({ authorization: 'Bearer k' });
      expect(asked.headers).not.toHaveProperty('x-gateway-inference-fairness-id');
    }
  });
});

describe('a fetch in the place of the platform’s', () => {
  afterEach(() => vi.unstubAllGlobals());

  it.each<[string, (own: FlowFetch) => typeof globalThis.fetch]>([
    ['itself', (own) => own as typeof globalThis.fetch],
    [
      'behind a function that passes on what it gets',
      (own) => (input, init) => own(input as string, { redirect: 'follow', ...init }),
    ],
  ])('takes one seat for a call, and sends it with what was there before: %s', async (_, inPlace) => {
    const server = await startModelServer();
    const setup = gated();
    let dispatched = 0;
    setup.flow.on('dispatched', () => dispatched++);
    vi.stubGlobal('fetch', inPlace(setup.fetch));
    const response = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: '{"model":"m"}' });
    expect(await response.json()).toMatchObject({ usage: { total_tokens: 9 } });
    await expectIdle(setup);
    expect([dispatched, server.asked.length]).toEqual([1, 1]);
  });

  it('is called by itself with a body of its own each time it is sent again', async () => {
    const server = await startModelServer(inTurn(refuse(503, { 'retry-after-ms': '0' }), serve));
    const setup = gated();
    vi.stubGlobal('fetch', setup.fetch);
    const response = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: '{"model":"m"}' });
    expect(response.status).toBe(200);
    await response.text();
    await expectIdle(setup);
    expect([setup.fetch.counts.retried, server.asked.map(({ body }) => body.model)]).toEqual([1, ['m', 'm']]);
  });
});

describe('a call that waits', () => {
  it('is sent when a seat is free', async () => {
    const server = await startModelServer();
    const setup = gated();
    const free = await occupy(setup, server);
    const second = setup.fetch(urlOf(server), chat());
    await until('it waits', () => setup.flow.stats().waiting === 1);
    expect(server.asked).toHaveLength(1);
    await free();
    expect((await second).status).toBe(200);
  });

  it('leaves the queue with the reason of a caller that aborts', async () => {
    const server = await startModelServer();
    const setup = gated();
    await occupy(setup, server);
    const abort = new AbortController();
    const second = setup.fetch(urlOf(server), { ...chat(), signal: abort.signal });
    await until('it waits', () => setup.flow.stats().waiting === 1);
    abort.abort();
    await expect(second).rejects.toMatchObject({ name: 'AbortError' });
    expect(setup.flow.stats().waiting).toBe(0);
    await expect(setup.fetch(urlOf(server), { ...chat(), signal: abort.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    expect(server.asked).toHaveLength(1);
  });

  it('belongs to the flow that is named by classify, else by the context, else to the default flow', async () => {
    const server = await startModelServer();
    const store = { fairnessId: 'from-context', priority: 5 };
    const keys: unknown[] = [];
    for (const options of [
      {},
      { context: { getStore: () => store } },
      { context: { getStore: () => store }, classify: byPath },
    ]) {
      const setup = gated(options);
      setup.flow.on('dispatched', ({ lease }) => keys.push([lease.fairnessId, lease.priority]));
      await (await setup.fetch(urlOf(server), chat())).text();
    }
    expect(keys).toEqual([
      ['default-flow', 0],
      ['from-context', 5],
      ['/v1/chat/completions', 5],
    ]);
    function byPath({ url }: FetchCall): { fairnessId: string } {
      return { fairnessId: new URL(url).pathname };
    }
  });

  it('books bytes and tokens of its body, and tells policies its model', async () => {
    const server = await startModelServer();
    const seen: unknown[] = [];
    const body = JSON.stringify({ model: 'llama', messages: 'ä€😀', max_completion_tokens: 50, n: 2 });
    for (const estimate of [undefined, () => 7]) {
      const { fetch, flow } = gated({ estimate });
      flow.on('dispatched', ({ item, lease }) => seen.push([item.request.byteSize, item.request.model, lease.tokens]));
      await (await fetch(urlOf(server), { ...chat(), body })).text();
    }
    const bytes = Buffer.byteLength(body);
    const prompt = Math.ceil(bytes / 4);
    expect(seen).toEqual([
      [bytes, 'llama', prompt + Math.min(Math.round(prompt * 1.5), 100)],
      [bytes, 'llama', 7],
    ]);
  });
});

describe('a drop', () => {
  /** Nobody may wait. */
  const full = {
    admission: {
      type: 'no-waiting',
      admit: (_request, _key, view) => (view.saturation() < 1 ? 'admit' : { reason: 'the seat is taken' }),
    },
  } satisfies Partial<FlowControllerOptions>;

  it('is an answer of the error contract, with both headers of when to come back', async () => {
    const server = await startModelServer();
    const setup = gated({}, full);
    await occupy(setup, server);
    const response = await setup.fetch(urlOf(server), chat());
    expect(response.status).toBe(429);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-llm-d-request-dropped-reason': 'rejected-saturated',
    });
    expectComeBack(Object.fromEntries(response.headers));
    expect(await response.json()).toMatchObject({ error: { code: 'ERR_FLOW_SATURATED', type: 'rate_limit_error' } });
  });

  it('is an exception where that is asked for', async () => {
    const server = await startModelServer();
    const setup = gated({ onDrop: 'throw', contract: 'llm-d' }, full);
    await occupy(setup, server);
    const error: unknown = await setup.fetch(urlOf(server), chat()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(FlowControlError);
    expect(error).toMatchObject({ status: 429, headers: { 'retry-after-ms': '1000' }, code: 'ERR_FLOW_SATURATED' });
  });

  it('has the body of the contract of Dynamo, and the one that the host asks for', async () => {
    const server = await startModelServer();
    for (const [options, type] of [
      [{ contract: 'dynamo' }, 'application/json'],
      [{ body: 'problem' }, 'application/problem+json'],
    ] as const) {
      const setup = gated(options, full);
      await occupy(setup, server);
      expect((await setup.fetch(urlOf(server), chat())).headers.get('content-type')).toBe(type);
    }
  });
});

describe('an eviction', () => {
  const evicting = { eviction: inFlightEviction() };

  function classes({ url }: FetchCall): { fairnessId: string; priority: number } {
    return url.endsWith('?urgent') ? { fairnessId: 'urgent', priority: 10 } : { fairnessId: 'batch', priority: -1 };
  }

  it('puts a call back that has no answer yet, and serves it afterwards', async () => {
    const server = await startModelServer(inTurn(hang, serve));
    const setup = gated({ classify: classes }, evicting);
    const batch = setup.fetch(urlOf(server), chat());
    await until('it runs', () => server.asked.length === 1);
    const urgent = await setup.fetch(`${urlOf(server)}?urgent`, chat());
    expect(server.asked[0]!.wasLeft).toBe(true);
    expect(await urgent.json()).toBeDefined();
    expect((await batch).status).toBe(200);
    expect(setup.fetch.counts.retried).toBe(1);
    await (await batch).text();
    await expectIdle(setup);
  });

  it('answers 429 to a call that may not be sent again', async () => {
    const server = await startModelServer(inTurn(hang, serve));
    const setup = gated({ classify: classes, retry: false }, evicting);
    const batch = setup.fetch(urlOf(server), chat());
    await until('it runs', () => server.asked.length === 1);
    await (await setup.fetch(`${urlOf(server)}?urgent`, chat())).text();
    const response = await batch;
    expect([response.status, response.headers.get('x-llm-d-request-dropped-reason')]).toEqual([
      429,
      'evicted-priority',
    ]);
    await expectIdle(setup);
  });

  it('breaks off a stream with the reason, and frees the seat at once', async () => {
    const server = await startModelServer(inTurn(stall, serve));
    const setup = gated({ classify: classes }, evicting);
    const text = expect((await setup.fetch(urlOf(server), streamed)).text()).rejects.toBeInstanceOf(FlowEvictedError);
    const urgent = await setup.fetch(`${urlOf(server)}?urgent`, chat());
    expect(urgent.status).toBe(200);
    await text;
    await urgent.text();
    await expectIdle(setup);
  });
});

describe('a refusal of the server', () => {
  it('is waited for as long as the server says, without a seat', async () => {
    const server = await startModelServer(inTurn(refuse(429, { 'retry-after-ms': '1' }), serve));
    const setup = gated();
    const response = await setup.fetch(urlOf(server), chat());
    expect(response.status).toBe(200);
    expect(server.asked).toHaveLength(2);
    expect(setup.fetch.counts.retried).toBe(1);
    await response.text();
    await expectIdle(setup);
  });

  it('teaches detectors, and the request waits in its place until they let it go', async () => {
    const server = await startModelServer(inTurn(refuse(429, { 'x-ratelimit-remaining-requests': '0' }), serve));
    const answers: unknown[] = [];
    let listener = (): void => {};
    let saturation = 0;
    const setup = gated(
      {},
      {
        saturationDetector: {
          type: 'learning',
          saturation: () => saturation,
          subscribe: (told) => {
            listener = told;
            return () => {};
          },
          answered: (_endpoint, _nowMs, _seat, { status, headers, body }) => {
            answers.push([status, headerValue(headers, ['x-ratelimit-remaining-requests']), body]);
            if (status === 429) saturation = 1;
          },
        },
      },
    );
    const call = setup.fetch(urlOf(server), chat());
    await until('it waits again', () => setup.flow.stats().waiting === 1);
    expect(server.asked).toHaveLength(1);
    saturation = 0;
    listener();
    expect((await call).status).toBe(200);
    await (await call).text();
    expect(answers).toEqual([
      [429, '0', expect.stringContaining('Rate limit reached')],
      [200, undefined, expect.anything()],
    ]);
    await expectIdle(setup);
  });

  it.each([
    ['says no time', refuse(429), {}],
    ['asks for longer than may be waited', refuse(429, { 'retry-after': '2' }), { retry: { maxWaitMs: 1000 } }],
    ['is not to be retried', refuse(503, { 'retry-after-ms': '1' }), { retry: false as const }],
    ['comes again', refuse(529, { 'retry-after-ms': '1' }), {}],
  ])('is the answer when it %s', async (_why, behave, options) => {
    const server = await startModelServer(behave);
    const setup = gated(options);
    const response = await setup.fetch(urlOf(server), chat());
    expect([429, 503, 529]).toContain(response.status);
    expect(await response.json()).toMatchObject({ error: { message: 'Rate limit reached' } });
    await expectIdle(setup);
  });

  it('sends the call to another endpoint, and has the first one avoided for as long as it says', async () => {
    const [spent, other] = [await startModelServer(refuse(429, { 'retry-after': '60' })), await startModelServer()];
    const pool = new EndpointPool();
    pool.add('spent', { labels: { url: spent.url }, weight: 1 });
    pool.add('other', { labels: { url: `${other.url}/v1` }, weight: 1 });
    const flow = new FlowController<FetchRequest>({
      pool,
      saturationDetector: concurrencyDetector({ maxConcurrency: 10 }),
      endpointPicker: { type: 'first', pick: (endpoints) => endpoints[0] },
    });
    const fetch = flowFetch(flow, { pool, headersFor: ({ id }) => ({ authorization: `Bearer key of ${id}` }) });
    const response = await fetch('http://model/v1/chat/completions?a=b', chat());
    expect(response.status).toBe(200);
    await response.text();
    expect(pool.get('spent')!.overloadedUntilMs - pool.now()).toBeGreaterThan(50_000);
    expect(spent.asked.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/v1/chat/completions?a=b', 'Bearer key of spent'],
    ]);
    expect(other.asked.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/v1/chat/completions?a=b', 'Bearer key of other'],
    ]);
    await expectIdle({ flow });
  });
});

describe('a first token that does not come in time', () => {
  const timeouts = { firstToken: 20, firstTokenByModel: { o3: '10m' } } as const;

  /** Lets the time for the first token pass once the attempt has reached its server. */
  async function expire(clock: ManualClock, server: ModelServer, asked = 1): Promise<void> {
    await until('the attempt was made', () => server.asked.length === asked);
    await clock.advance(20);
  }

  it('has the call sent again, and nothing of the first attempt reaches the caller', async () => {
    for (const late of [hang, think]) {
      const server = await startModelServer(inTurn(late, serve));
      const clock = new ManualClock();
      const setup = gated({ timeouts, clock });
      const call = setup.fetch(urlOf(server), streamed);
      await expire(clock, server);
      const text = await (await call).text();
      expect(text).toContain('ved');
      expect(text.match(/keep-alive/g)).toHaveLength(1);
      expect(server.asked).toHaveLength(2);
      await until('the late server was left', () => server.asked[0]!.wasLeft);
      await expectIdle(setup);
    }
  });

  it('has the last attempt wait as long as it takes', async () => {
    const server = await startModelServer(think);
    const clock = new ManualClock();
    const call = gated({ timeouts, clock }).fetch(urlOf(server), streamed);
    await expire(clock, server);
    await expire(clock, server, 2);
    const response = await call;
    sendText(server.asked[1]!, 'served');
    server.asked[1]!.res.end();
    expect(await response.text()).toContain('served');
    expect(server.asked).toHaveLength(2);
  });

  it('gives the last attempt the time for its first byte', async () => {
    const server = await startModelServer(hang);
    const clock = new ManualClock();
    const setup = gated({ timeouts: { ...timeouts, firstByte: 30 }, clock });
    const call = expect(setup.fetch(urlOf(server), streamed)).rejects.toMatchObject({ name: 'TimeoutError' });
    await expire(clock, server);
    await expire(clock, server, 2);
    await clock.advance(10);
    await call;
    await expectIdle(setup);
  });

  it.each([
    ['a model with a time of its own', chat({ stream: true, model: 'o3' })],
    ['a call that asks for no stream', chat()],
  ])('is no matter for %s', async (_what, init) => {
    const server = await startModelServer(hang);
    const clock = new ManualClock();
    const call = gated({ timeouts: { ...timeouts, firstByte: 60 }, clock }).fetch(urlOf(server), init);
    const failed = expect(call).rejects.toMatchObject({ name: 'TimeoutError' });
    await expire(clock, server);
    await clock.advance(40);
    await failed;
    expect(server.asked).toHaveLength(1);
  });

  it('goes to another endpoint where there is one', async () => {
    const servers = [await startModelServer(think), await startModelServer()];
    const pool = new EndpointPool();
    for (const [index, { url }] of servers.entries()) pool.add(`e${index}`, { labels: { url }, weight: 1 });
    const flow = new FlowController<FetchRequest>({
      pool,
      saturationDetector: concurrencyDetector({ maxConcurrency: 10 }),
      endpointPicker: elsewhere({ type: 'first', pick: (endpoints) => endpoints[0] }),
    });
    const clock = new ManualClock();
    const call = flowFetch(flow, { timeouts, clock })('http://model/v1/chat/completions', streamed);
    await expire(clock, servers[0]!);
    expect(await (await call).text()).toContain('ved');
    expect(servers.map(({ asked }) => asked.length)).toEqual([1, 1]);
    await expectIdle({ flow });
  });
});

describe('what cannot be right', () => {
  it('is told when the fetch is made', () => {
    const { flow } = gated();
    expect(() => flowFetch(flow, { retry: { max: -1 }, timeouts: { firstToken: 0 }, fech: fetch } as never)).toThrow(
      FlowConfigError,
    );
    expect(() => flowFetch(undefined as never)).toThrow('a FlowController');
  });

  it('is told when classify answers later', async () => {
    const { fetch } = gated({ classify: (async () => ({ fairnessId: 'a' })) as never });
    await expect(fetch('http://model/', chat())).rejects.toThrow('look tenants up first');
  });
});
