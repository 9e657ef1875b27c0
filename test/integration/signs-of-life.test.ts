/**
 * Answers that begin while their requests wait, and every way in which they can end, in every adapter: of requests of
 * three dialects at a time, over real sockets. Handlers notice nothing of it.
 *
 * Longer than most files, because one table has every end for every host.
 *
 * Failover is the gateway's alone: adapters ask no server. `test/gateway/requests/signs-of-life.test.ts` has it.
 */
import http2 from 'node:http2';
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { WaitingOptions } from '../../src/adapters/http/life-signs.js';
import {
  type Drop,
  EndpointPool,
  edf,
  type FlowControllerOptions,
  type FlowKey,
  inFlightEviction,
  type Lease,
  quotaDetector,
} from '../../src/index.js';
import { budgets } from '../../src/spending/index.js';
import { ManualClock } from '../../src/testing/index.js';
import type { WaitExplanation } from '../../src/types/index.js';
import type { Host, Io } from './support/application.js';
import { countingGate } from './support/counting-gate.js';
import { fetchHosts } from './support/fetch-hosts.js';
import { hosts } from './support/hosts.js';
import { type Running, start } from './support/start.js';
import { until } from './support/until.js';

const everywhere = [...hosts, ...fetchHosts];

const dialects = {
  'OpenAI chat': { path: '/v1/chat/completions', sign: ': waiting\n\n' },
  Responses: { path: '/v1/responses', sign: ': waiting\n\n' },
  Anthropic: { path: '/v1/messages', sign: 'event: ping\ndata: {"type": "ping"}\n\n' },
} as const;
type Dialect = keyof typeof dialects;
const inEach = Object.keys(dialects) as readonly Dialect[];

interface Setup {
  readonly handler?: (io: Io) => void | Promise<void>;
  readonly flow?: Partial<FlowControllerOptions>;
  /** Seats, all taken until `free`. @default 1 */
  readonly seats?: number;
  /** What waits before the clients do. */
  readonly before?: readonly string[];
  readonly onDrop?: 'throw';
  readonly waiting?: Omit<WaitingOptions<unknown>, 'isStream' | 'place'>;
  readonly accept?: string;
}

type Client = ReturnType<Running['client']['request']>;

interface Begun extends Running {
  readonly clients: readonly (readonly [Dialect, Client])[];
  readonly holders: readonly Lease[];
  readonly told: readonly string[];
  readonly errors: readonly unknown[];
  free(): void;
  /** A request that is no client's: it goes when it may, and is over then. */
  add(key: FlowKey): Promise<unknown>;
}

/** All seats are taken; a client of each dialect waits, and its answer has begun. */
async function begun(host: Host, setup: Setup = {}): Promise<Begun> {
  const { handler = () => {}, flow: options = {}, seats = 1, before = [], onDrop, waiting = {} } = setup;
  const { accept = 'text/event-stream' } = setup;
  const told: string[] = [];
  const errors: unknown[] = [];
  const started = await start(host, {
    gate: countingGate(seats, options),
    handler,
    onError: (error) => errors.push(error),
    options: {
      onDrop,
      waiting: { after: 10, every: 3_600_000, onSign: (what) => told.push(what), ...waiting },
      classify: () => ({ fairnessId: 'waiting', priority: -10, tokens: 10 }),
    },
  });
  const { flow } = started.gate;
  const holders: Lease[] = [];
  for (let seat = 0; seat < seats; seat++) {
    const held = await flow.enqueue({ byteSize: 1, tokens: 100 }, { fairnessId: 'waiting' });
    holders.push((held as unknown as { lease: Lease }).lease);
  }
  const add = async (key: FlowKey): Promise<void> => {
    const outcome = await flow.enqueue({ byteSize: 1 }, key);
    if (outcome.type === 'Dispatched') outcome.lease.release();
  };
  for (const fairnessId of before) void add({ fairnessId, priority: -10 });
  const clients = inEach.map((dialect) => {
    return [dialect, started.client.request({ path: dialects[dialect].path, headers: { accept } })] as const;
  });
  await until('the answers have begun', () => clients.every(([, client]) => client.received() !== ''));
  const free = (): void => {
    for (const lease of holders) lease.release();
  };
  return { ...started, clients, holders, told, errors, free, add };
}

/** What came after the signs of life, to the end. */
async function restOf([dialect, client]: Begun['clients'][number]): Promise<string> {
  const text = await client.text;
  expect(await client.status).toBe(200);
  const { sign } = dialects[dialect];
  expect(text.slice(0, sign.length)).toBe(sign);
  return text.slice(sign.length);
}

/** That this is one event, which tells of the error as the dialect does. */
function expectError(dialect: Dialect, text: string, error: { code: string; status: number; message?: unknown }): void {
  const [, name, data = ''] = /^(?:event: (\w+)\n)?data: (.*)\n\n$/.exec(text) ?? [];
  const told = { message: expect.stringMatching(/./), ...error };
  const isOverload = [429, 503].includes(error.status);
  if (dialect === 'OpenAI chat') expect([name, JSON.parse(data)]).toMatchObject([undefined, { error: told }]);
  else if (dialect === 'Responses')
    expect([name, JSON.parse(data)]).toMatchObject(['error', { type: 'error', sequence_number: 0, ...told }]);
  else {
    const type = isOverload ? 'overloaded_error' : 'api_error';
    expect([name, JSON.parse(data)]).toMatchObject(['error', { type: 'error', error: { ...told, type } }]);
  }
}

/** Nobody has a seat, nobody waits, and every lease was released once. */
async function expectAllBack({ gate, free }: Begun): Promise<void> {
  free();
  await until('all seats are free', () => gate.flow.stats().inFlight === 0 && gate.flow.stats().waiting === 0);
  expect(gate.releases.every((count) => count === 1)).toBe(true);
}

interface End {
  readonly setup: Setup;
  readonly cause: (waits: Begun) => unknown;
  readonly error: { readonly code: string; readonly status: number; readonly message?: unknown };
  readonly reason: Drop['reason'];
}

/** Every reason for which a request that waits, or runs unanswered, is dropped; but for clients that leave. */
const drops = (): Readonly<Record<string, End>> => {
  const clock = new ManualClock();
  const pool = new EndpointPool();
  pool.add('a');
  const limits = [{ unit: 'tokens' as const, limit: 100, per: 'month' }];
  const perMonth = budgets({ budgets: [{ by: 'flow', limits }], wallClock: () => Date.UTC(2028, 0, 2) });
  return {
    'its time is up': {
      setup: { flow: { clock } },
      cause: () => clock.advance(60_000),
      error: { code: 'ERR_FLOW_TTL_EXPIRED', status: 503 },
      reason: 'ttl-expired',
    },
    'the controller closes': {
      setup: {},
      cause: ({ gate, free }) => {
        void gate.flow.close();
        free();
      },
      error: { code: 'ERR_FLOW_SHUTTING_DOWN', status: 500 },
      reason: 'shutting-down',
    },
    'requests of a higher priority take its place': {
      setup: { flow: { limits: { maxRequests: 3 }, overflow: 'fair' } },
      cause: ({ add }) => inEach.map(() => add({ fairnessId: 'premium', priority: 100 })),
      error: { code: 'ERR_FLOW_SATURATED', status: 429 },
      reason: 'displaced',
    },
    'flows with less waiting take its place': {
      setup: { flow: { limits: { maxRequests: 6 }, overflow: 'fair' }, before: ['waiting', 'waiting', 'waiting'] },
      cause: ({ add }) => inEach.map((_, i) => add({ fairnessId: `other ${i}`, priority: -10 })),
      error: { code: 'ERR_FLOW_SATURATED', status: 429 },
      reason: 'displaced',
    },
    'no server is left': {
      setup: { flow: { pool, clock } },
      cause() {
        pool.remove('a');
        clock.advance(60_000);
      },
      error: { code: 'ERR_FLOW_NO_ENDPOINTS', status: 503 },
      reason: 'no-endpoints',
    },
    'it can be in time no more': {
      setup: {
        flow: { clock, defaultBand: { ordering: edf({ dropInfeasible: true, firstTokenAfter: '20s' }) } },
      },
      cause({ free }) {
        clock.advance(50_000);
        free();
      },
      error: { code: 'ERR_FLOW_INFEASIBLE', status: 503 },
      reason: 'infeasible',
    },
    'the host revokes it at its turn': {
      setup: { flow: { onDispatch: () => 'the key is void' } },
      cause: ({ free }) => free(),
      error: { code: 'ERR_FLOW_REVOKED', status: 403, message: expect.stringContaining('the key is void') },
      reason: 'revoked',
    },
    'a quota has no room in time': {
      setup: { flow: { constraints: [quotaDetector({ groups: [{}] })] } },
      cause({ holders, free }) {
        holders[0]!.answered({ status: 429, headers: { 'retry-after': '7200' } });
        free();
      },
      error: { code: 'ERR_FLOW_SATURATED', status: 429 },
      reason: 'over-quota',
    },
    'its budget has no room in time': {
      setup: {
        flow: {
          constraints: [perMonth],
        },
      },
      cause: ({ holders, free }) => {
        holders[0]!.report({ promptTokens: 90, completionTokens: 5 });
        free();
      },
      error: { code: 'ERR_FLOW_BUDGET', status: 429 },
      reason: 'over-budget',
    },
    'it is evicted while its handler has answered nothing': {
      setup: { seats: 3, handler: () => new Promise(() => {}), flow: { eviction: inFlightEviction() } },
      async cause({ gate, free }) {
        free();
        await until('all run', () => gate.releases.length === 3);
        const key = { fairnessId: 'premium', priority: 100 };
        const premium = await Promise.all(inEach.map(() => gate.flow.enqueue({ byteSize: 1 }, key)));
        for (const outcome of premium) if (outcome.type === 'Dispatched') outcome.lease.release();
      },
      error: { code: 'ERR_FLOW_EVICTED', status: 429 },
      reason: 'evicted',
    },
  };
};

describe.each(everywhere)('$name: an answer that began', (host: Host) => {
  describe('is told of a drop as an event of its dialect:', () => {
    it.each(Object.keys(drops()))('%s', async (what) => {
      const { setup, cause, error, reason } = drops()[what]!;
      const waits = await begun(host, setup);
      await cause(waits);
      for (const client of waits.clients) expectError(client[0], await restOf(client), error);
      expect(await waits.clients[0]![1].text).toContain(`"reason":"${reason}"`);
      expect(waits.told.filter((what) => what !== 'failed')).toHaveLength(6);
      expect(waits.told.filter((what) => what === 'failed')).toHaveLength(3);
      await expectAllBack(waits);
    });

    it('also where drops are thrown', async () => {
      const clock = new ManualClock();
      const waits = await begun(host, { flow: { clock }, onDrop: 'throw' });
      clock.advance(60_000);
      for (const client of waits.clients)
        expectError(client[0], await restOf(client), { code: expect.any(String), status: 503 } as never);
      await expectAllBack(waits);
    });
  });

  it('goes on with the events of the handler', async () => {
    const waits = await begun(host, {
      handler(io) {
        const stream = io.stream();
        stream.write('data: 1\n\n');
        setImmediate(() => stream.end('data: 2\n\n'));
      },
    });
    waits.free();
    for (const client of waits.clients) expect(await restOf(client)).toBe('data: 1\n\ndata: 2\n\n');
    expect(waits.told.filter((what) => what === 'failed')).toEqual([]);
    await expectAllBack(waits);
  });

  it('has the JSON of the handler as one event', async () => {
    const waits = await begun(host, { handler: (io) => io.send(200, '{\n  "a": 1\n}') });
    waits.free();
    for (const client of waits.clients) expect(await restOf(client)).toBe('data: {\ndata:   "a": 1\ndata: }\n\n');
    await expectAllBack(waits);
  });

  it('tells what the handler refuses, in its words', async () => {
    const waits = await begun(host, {
      handler: (io) => io.send(422, '{"error":{"message":"too long","code":"long","param":"messages"}}'),
    });
    waits.free();
    const error = { message: 'too long', code: 'long', param: 'messages', status: 422 };
    for (const client of waits.clients) expectError(client[0], await restOf(client), error);
    expect(waits.told.filter((what) => what === 'failed')).toHaveLength(3);
    await expectAllBack(waits);
  });

  it('tells of a handler that throws, and so does the host', async () => {
    const waits = await begun(host, {
      handler() {
        throw new Error('broken');
      },
    });
    waits.free();
    // Without a framework nobody catches it any more: the runtime hears of it by the body.
    const isAlone = host.name === 'a fetch runtime';
    const read = async ([dialect, client]: Begun['clients'][number]): Promise<string> => {
      if (!isAlone) return restOf([dialect, client]);
      await expect(client.text).rejects.toThrow();
      return client.received().slice(dialects[dialect].sign.length);
    };
    const error = { code: '500', status: 500 };
    for (const client of waits.clients) expectError(client[0], await read(client), error);
    expect(waits.errors).toEqual(Array(isAlone ? 0 : 3).fill(expect.objectContaining({ message: 'broken' })));
    await expectAllBack(waits);
  });

  it('breaks off where the handler’s stream does', async () => {
    const waits = await begun(host, {
      handler(io) {
        const stream = io.stream();
        stream.on('error', () => {}).write('data: 1\n\n');
        setTimeout(() => stream.destroy(new Error('broken')), 20);
      },
    });
    waits.free();
    // Fastify destroys the response. Node ends an HTTP/2 stream then as if it were complete, with signs or without.
    const seemsWhole = host.name === 'Fastify 5 on node:http2';
    for (const client of waits.clients)
      if (seemsWhole) expect(await restOf(client)).toBe('data: 1\n\n');
      else await expect(client[1].text).rejects.toThrow();
    await expectAllBack(waits);
  });

  it('is left by its clients while they wait, and their places are free', async () => {
    const waits = await begun(host);
    for (const [, client] of waits.clients) client.leave();
    await until('nobody waits', () => waits.gate.flow.stats().waiting === 0);
    expect(waits.gate.releases).toEqual([]);
    await expectAllBack(waits);
  });

  it.each([
    ['before a byte was answered', () => {}],
    [
      'in the midst of the stream',
      (io: Io) =>
        void io
          .stream()
          .on('error', () => {})
          .write('data: 1\n\n'),
    ],
  ])('is left by its clients while they are served, %s: handlers are told', async (_, answer) => {
    const signals: AbortSignal[] = [];
    const waits = await begun(host, {
      seats: 3,
      handler(io) {
        signals.push(io.flow!.signal);
        answer(io);
        // Handlers that have not answered are at work.
        return answer.length === 0 ? new Promise(() => {}) : undefined;
      },
    });
    waits.free();
    await until('all are served', () => signals.length === 3);
    if (answer.length > 0)
      for (const [, client] of waits.clients) await until('it reads', () => client.received().endsWith('data: 1\n\n'));
    for (const [, client] of waits.clients) client.leave();
    await until('all are told', () => signals.every(({ aborted }) => aborted));
    await expectAllBack(waits);
  });

  it('of who wants no stream is JSON behind spaces, where the host says so', async () => {
    const waits = await begun(host, {
      accept: 'application/json',
      waiting: { json: 'whitespace' },
      handler: (io) => (io.path.endsWith('messages') ? io.send(400, '{"no":1}') : io.send(200, '{"yes":1}')),
    });
    waits.free();
    const texts = await Promise.all(waits.clients.map(([, client]) => client.text));
    expect(texts).toEqual([' {"yes":1}', ' {"yes":1}', ' {"no":1}']);
    await expectAllBack(waits);
  });
});

describe.each(everywhere)('$name: a client that does not read', (host: Host) => {
  it('has signs as far as its connection holds them, is dropped in time, and finds everything when it reads', async () => {
    const clock = new ManualClock();
    const gate = countingGate(1, { clock });
    const held = await gate.flow.enqueue({ byteSize: 1 }, { fairnessId: 'other' });
    let signs = 0;
    const place = (): WaitExplanation =>
      ({ ahead: 2 ** 52, aheadInOtherFlows: 0, inHigherBands: 0 }) as WaitExplanation;
    const waiting = {
      after: 1,
      every: 1,
      place,
      onSign: (what: string) => {
        if (what === 'sign') signs++;
      },
    };
    const corked: Socket[] = [];
    const { port } = await start(host, {
      gate,
      handler: () => {},
      options: { waiting },
      // What is written stays in this process, as if the network took nothing.
      prepare(server) {
        if (host.protocol === 'http2') return;
        server.on('connection', (socket: Socket) => {
          socket.cork();
          corked.push(socket);
        });
      },
    });
    const unread = host.protocol === 'http1' ? unreadHttp1(port, corked) : unreadHttp2(port);
    let before = -1;
    while (signs === 0 || signs > before) {
      before = signs;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(signs * sign.length).toBeLessThan(150_000);
    clock.advance(60_000);
    await until('it is dropped', () => gate.flow.stats().waiting === 0);
    const text = await unread.read();
    expect(text.slice(0, signs * sign.length)).toBe(sign.repeat(signs));
    expectError('OpenAI chat', text.slice(signs * sign.length), { code: 'ERR_FLOW_TTL_EXPIRED', status: 503 });
    (held as unknown as { lease: Lease }).lease.release();
    await until('all seats are free', () => gate.flow.stats().inFlight === 0);
  });
});

const sign = `: waiting position=${2 ** 52 + 1}\n\n`;

interface Unread {
  /** Begins to read, to the end. */
  read(): Promise<string>;
}

function unreadHttp1(port: number, corked: readonly Socket[]): Unread {
  const response = fetch(`http://localhost:${port}/v1/chat/completions`, { headers: { accept: 'text/event-stream' } });
  return {
    async read() {
      for (const socket of corked) socket.uncork();
      return (await response).text();
    },
  };
}

/** Its window is shut until it reads. */
function unreadHttp2(port: number): Unread {
  const session = http2.connect(`http://localhost:${port}`, { settings: { initialWindowSize: 0 } });
  onTestFinished(() => session.destroy());
  const stream = session.request({ ':path': '/v1/chat/completions', accept: 'text/event-stream' });
  return {
    async read() {
      session.settings({ initialWindowSize: 65_535 });
      let text = '';
      for await (const chunk of stream) text += chunk;
      return text;
    },
  };
}
