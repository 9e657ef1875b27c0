/** Turns over real sockets: the host serves them, or a model server behind it does; clients are `ws` and OpenAI's SDK. */
import { createConnection } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import {
  type FlowTurnsOptions,
  flowTurns,
  type ServedTurn,
  type SocketTurns,
  type TurnEvent,
} from '../../../src/adapters/ws/index.js';
import { explainWait, FlowController, inFlightEviction } from '../../../src/index.js';
import { audit } from '../../../src/testing/index.js';
import { startModelServer } from '../../gateway/support/model-server.js';
import { deferred, until } from '../../integration/support/until.js';
import { collectGarbage } from '../../support/collect-garbage.js';
import { connect, startSockets } from './support.js';

const created = { type: 'response.created', response: { id: 'r1' } };
const completed = { type: 'response.completed', response: { id: 'r1', status: 'completed' } };
const create = { type: 'response.create', model: 'default-model', input: 'hello' };

async function answer({ send }: ServedTurn): Promise<void> {
  await send(created);
  await send({ type: 'response.output_text.delta', delta: 'hello' });
  await send(completed);
}

/** Two seats, unless `flow` says otherwise; everybody is one tenant. */
async function startTurns(options: Partial<FlowTurnsOptions> = {}, flow = new FlowController({ maxConcurrency: 2 })) {
  const made: SocketTurns[] = [];
  const url = await startSockets((socket) => {
    const defaults = {
      classify: () => ({ fairnessId: 'a', priority: 0 }),
      ...(options.server === undefined && { serve: answer }),
    };
    made.push(flowTurns(flow, socket, { ...defaults, ...options }));
  });
  onTestFinished(async () => void (await flow.close()));
  return { flow, url, made };
}

const idle = (flow: FlowController): boolean => flow.stats().inFlight === 0 && flow.stats().waiting === 0;

describe('a socket', () => {
  it('has a seat while a turn runs, and none before or after', async () => {
    const go = deferred();
    const { flow, url } = await startTurns({
      async serve(turn) {
        await turn.send(created);
        await go.promise;
        await turn.send(completed);
      },
    });
    const client = await connect(url);
    expect(flow.stats().inFlight).toBe(0);
    client.send(create);
    await client.next('response.created');
    expect(flow.stats().inFlight).toBe(1);
    go.resolve();
    await client.next('response.completed');
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 1 });
  });

  it('is told that its turn waits, with its place, and then served', async () => {
    const flow = new FlowController<{ byteSize: number; req?: unknown }>({ maxConcurrency: 1 });
    const { url } = await startTurns(
      {
        waiting: {
          after: 5,
          every: 5,
          place: (event) => explainWait(flow, ({ req }) => req === event),
        },
      },
      flow as FlowController,
    );
    const { outcome } = { outcome: await flow.enqueue({ byteSize: 1 }, { fairnessId: 'b', priority: 0 }) };
    const client = await connect(url);
    client.send(create);
    expect(await client.next('response.queued')).toMatchObject({ response: { status: 'queued' }, position: 1 });
    if (outcome.type === 'Dispatched') outcome.lease.release();
    await client.next('response.completed');
  });

  it('that is one too many is closed with 1013, and makes room when it is gone', async () => {
    const { url, flow } = await startTurns({ maxSockets: 1 });
    const first = await connect(url);
    const second = await connect(url);
    await until('closed', () => second.closed !== undefined);
    expect(second.closed?.code).toBe(1013);
    first.socket.close();
    await until('closed', () => first.closed !== undefined);
    const third = await connect(url);
    third.send(create);
    await third.next('response.completed');
    expect(flow.stats().dispatched).toBe(1);
  });

  it('that says nothing for long is closed, and one with a turn is not', async () => {
    const go = deferred();
    const { url, flow } = await startTurns({ idleMs: 300, serve: () => go.promise });
    const busy = await connect(url);
    busy.send(create);
    await until('it runs', () => flow.stats().inFlight === 1);
    const silent = await connect(url);
    await until('closed', () => silent.closed !== undefined);
    expect(silent.closed?.code).toBe(1000);
    expect(busy.closed).toBeUndefined();
    go.resolve();
    await until('closed', () => busy.closed !== undefined);
  });

  it('that sends a message beyond the limit is closed with 1009, and its turn with it', async () => {
    const { url, flow } = await startTurns({ maxMessageBytes: 100, serve: ({ signal }) => aborted(signal) });
    const client = await connect(url);
    client.send(create);
    await until('it runs', () => flow.stats().inFlight === 1);
    client.send({ ...create, input: 'x'.repeat(100) });
    await until('closed', () => client.closed !== undefined);
    expect(client.closed?.code).toBe(1009);
    await until('given back', () => idle(flow));
  });

  it('drains: its turn ends, then it is closed with 1012', async () => {
    const go = deferred();
    const { url, made } = await startTurns({
      async serve(turn) {
        await turn.send(created);
        await go.promise;
        await turn.send(completed);
      },
    });
    const [busy, still] = [await connect(url), await connect(url)];
    busy.send(create);
    await busy.next('response.created');
    for (const each of made) each.drain();
    await until('closed', () => still.closed !== undefined);
    expect([still.closed?.code, busy.closed]).toEqual([1012, undefined]);
    go.resolve();
    await busy.next('response.completed');
    await until('closed', () => busy.closed !== undefined);
    expect(busy.closed?.code).toBe(1012);
  });
});

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

describe('a turn', () => {
  it('that is rejected is an error with code, message and wait', async () => {
    const flow = new FlowController({ maxConcurrency: 1, limits: { maxRequests: 1 } });
    const { url } = await startTurns({ serve: ({ signal }) => aborted(signal) }, flow);
    const clients = [await connect(url), await connect(url), await connect(url)];
    for (const client of clients) client.send(create);
    await until('told', () => clients.some(({ events }) => events.length > 0));
    const told = clients.flatMap(({ events }) => events);
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({ type: 'error', status: 429, code: 'ERR_FLOW_SATURATED' });
    expect(told[0]?.retry_after_ms).toBeGreaterThan(0);
  });

  it.each(['queued', 'dispatched', 'streaming'])(
    'whose client vanishes while it is %s is given back',
    async (phase) => {
      const flow = new FlowController({ maxConcurrency: 1 });
      const { url } = await startTurns(
        {
          async serve({ send, signal }) {
            if (phase === 'streaming') await send(created);
            await aborted(signal);
          },
        },
        flow,
      );
      const first = await connect(url);
      first.send(create);
      await until('it runs', () => flow.stats().inFlight === 1);
      if (phase === 'queued') {
        const second = await connect(url);
        second.send(create);
        await until('it waits', () => flow.stats().waiting === 1);
        second.socket.terminate();
        await until('it has left', () => flow.stats().waiting === 0);
        expect(flow.stats().outcomes.EvictedContextCancelled).toBe(1);
      }
      if (phase === 'streaming') await first.next('response.created');
      first.socket.terminate();
      await until('given back', () => idle(flow));
      expect(audit(flow).violations).toEqual([]);
    },
  );

  it('that is evicted ends by response.failed, and its seat goes to the other', async () => {
    const flow = new FlowController({
      maxConcurrency: 1,
      eviction: inFlightEviction(),
      bands: [{ priority: 1 }, { priority: -1 }],
    });
    const { url } = await startTurns(
      {
        classify: ({ fields }) => ({ fairnessId: 'a', priority: Number(fields.priority) }),
        async serve({ send, event, signal }) {
          await send(created);
          if (event.fields.priority === 1) await send(completed);
          else await aborted(signal);
        },
      },
      flow,
    );
    const [batch, chat] = [await connect(url), await connect(url)];
    batch.send({ ...create, priority: -1 });
    await batch.next('response.created');
    chat.send({ ...create, priority: 1 });
    await chat.next('response.completed');
    expect(await batch.next('response.failed')).toMatchObject({
      response: { id: 'r1', status: 'failed', error: { code: 'ERR_FLOW_EVICTED' } },
    });
    await until('given back', () => idle(flow));
  });

  it('that takes too long is an error, and its host is told to stop', async () => {
    const { flow, url } = await startTurns({ turnMs: 10, serve: ({ signal }) => aborted(signal) });
    const client = await connect(url);
    client.send(create);
    expect(await client.next('error')).toMatchObject({ code: 'ERR_FLOW_TURN_TIMEOUT', status: 504 });
    await until('given back', () => idle(flow));
  });

  it('whose host fails is an error, which is told', async () => {
    const errors: unknown[] = [];
    const { flow, url } = await startTurns({
      serve: () => Promise.reject(new Error('broken')),
      onError: (error) => errors.push(error),
    });
    const client = await connect(url);
    client.send(create);
    expect(await client.next('error')).toMatchObject({ code: 'internal', status: 500 });
    expect([errors, idle(flow)]).toEqual([[new Error('broken')], true]);
  });

  it('whose host cannot say whose it is, is an error', async () => {
    const errors: unknown[] = [];
    const { url } = await startTurns({
      classify() {
        throw new Error('who?');
      },
      onError: (error) => errors.push(error),
    });
    const client = await connect(url);
    client.send(create);
    await client.next('error');
    expect(errors).toEqual([new Error('who?')]);
  });

  it('that its client cancels is told to stop, and the next one runs', async () => {
    const { flow, url } = await startTurns({
      async serve({ send, event, signal }) {
        await send(created);
        if (event.fields.waits === true) await aborted(signal);
        else await send(completed);
      },
    });
    const client = await connect(url);
    client.send({ ...create, waits: true });
    await client.next('response.created');
    client.send({ type: 'response.cancel', response_id: 'r1' });
    expect(await client.next('response.incomplete')).toMatchObject({ response: { id: 'r1', status: 'cancelled' } });
    client.send(create);
    await client.next('response.completed');
    expect(idle(flow)).toBe(true);
  });

  it('is not sent faster than its client reads', async () => {
    let sent = 0;
    const { url } = await startTurns({
      maxBufferedBytes: 1000,
      async serve({ send, signal }) {
        await send(created);
        for (; sent < 2_000 && !signal.aborted; sent++)
          await send({ type: 'response.output_text.delta', delta: 'x'.repeat(50_000) });
        await send(completed);
      },
    });
    const client = await connect(url);
    client.send(create);
    await client.next('response.created');
    client.socket.pause();
    let before = -1;
    await until('it stands', () => {
      const stands = sent === before;
      before = sent;
      return stands && sent > 0;
    });
    expect(sent).toBeLessThan(1_500);
    client.socket.resume();
    await client.next('response.completed');
    expect(sent).toBe(2_000);
  });
});

describe('frames that are no turns', () => {
  it('go to the host in their order', async () => {
    const heard: string[] = [];
    const { url } = await startTurns({
      dialect: 'realtime',
      onMessage: (data, isBinary) => heard.push(isBinary ? 'bytes' : JSON.parse(data.toString()).type),
      async serve({ send }) {
        heard.push('turn');
        await send({ type: 'response.created', response: { id: 'r' } });
        await send({ type: 'response.done', response: { id: 'r', status: 'completed' } });
      },
    });
    const client = await connect(url);
    client.send({ type: 'session.update' });
    client.send({ type: 'response.create' });
    client.socket.send(Buffer.from([1, 2]));
    await client.next('response.done');
    await until('heard', () => heard.length === 3);
    expect(heard).toEqual(['session.update', 'turn', 'bytes']);
  });
});

describe('wrong options', () => {
  const socket = { on() {}, send() {}, pause() {} } as unknown as WebSocket;
  const classify = () => ({ fairnessId: 'a', priority: 0 });
  const flow = new FlowController({ maxConcurrency: 1 });

  it.each<[string, object]>([
    ['one of "serve" and "server"', { classify }],
    ['one of "serve" and "server"', { classify, serve: answer, server: socket }],
    ['classify: expected a function', { serve: answer }],
    ['maxSocket', { classify, serve: answer, maxSocket: 1 }],
    ['turnMs: expected ms above 0', { classify, serve: answer, turnMs: 0 }],
    ['dialect', { classify, serve: answer, dialect: 'chat' }],
    ['waiting.after', { classify, serve: answer, waiting: { after: -1 } }],
  ])('say %s', (message, options) => {
    expect(() => flowTurns(flow, socket, options as FlowTurnsOptions)).toThrow(message);
  });
});

describe('before a model server', () => {
  /** Each socket of a client has its own to the server. */
  async function startProxy(
    dialect: 'responses' | 'realtime',
    flow: FlowController,
    priorityOf: (event: TurnEvent) => number = () => 0,
  ) {
    const model = await startModelServer('m');
    const path = dialect === 'realtime' ? '/v1/realtime' : '/v1/responses';
    const base = await startSockets((socket) => {
      const server = new WebSocket(`${model.url.replace('http', 'ws')}${path}`);
      const classify = (event: TurnEvent) => ({ fairnessId: 'a', priority: priorityOf(event) });
      flowTurns(flow, socket, { dialect, server, classify });
    });
    return { model, base, http: base.replace('ws:', 'http:') };
  }

  it("OpenAI's client of Responses has one turn after the other, and a refusal of the server ends one", async () => {
    const flow = new FlowController({ maxConcurrency: 1 });
    const { http } = await startProxy('responses', flow);
    const socket = new ResponsesWS(new OpenAI({ apiKey: 'none', baseURL: `${http}/v1` }));
    onTestFinished(() => socket.close());
    const texts = [''];
    const failed: string[] = [];
    socket.on('response.output_text.delta', ({ delta }) => void texts.push(`${texts.pop()}${delta}`));
    socket.on('response.completed', () => void texts.push(''));
    socket.on('error', (error) => void failed.push(error.message));
    const ask = (model: string) =>
      socket.send({ type: 'response.create', model, input: 'hello', max_output_tokens: 3 });
    ask('default-model');
    ask('no-model');
    ask('default-model');
    await until('served', () => texts.length === 3 && failed.length === 1);
    expect(texts).toEqual(['Hello from m.', 'Hello from m.', '']);
    expect(failed[0]).toContain('no-model');
    expect(flow.stats()).toMatchObject({ inFlight: 0, dispatched: 3, released: 3 });
  });

  it("OpenAI's client of Realtime has its turns, cancels one, and is told of one that is dropped", async () => {
    const flow = new FlowController({ maxConcurrency: 1, defaultRequestTtl: 20 });
    const { base } = await startProxy('realtime', flow);
    const { hostname: host, port } = new URL(base);
    // The client speaks TLS alone; the test takes that away below it.
    const options = { createConnection: () => createConnection({ host, port: Number(port) }) };
    const client = new OpenAI({ apiKey: 'none', baseURL: 'https://model.test/v1' });
    const socket = new OpenAIRealtimeWS({ model: 'default-model', options }, client);
    onTestFinished(() => socket.close());
    const done: (string | undefined)[] = [];
    const failed: (string | null | undefined)[] = [];
    socket.on('response.done', ({ response }) => void done.push(response.status));
    socket.on('error', ({ error }) => void failed.push(error?.code));
    await new Promise((resolve) => socket.on('session.created', resolve));
    expect(flow.stats().inFlight).toBe(0);
    socket.send({ type: 'response.create', response: { max_output_tokens: 2 } });
    await until('served', () => done.length === 1);
    socket.on('response.created', ({ response }) =>
      socket.send({ type: 'response.cancel', response_id: response.id! }),
    );
    socket.send({ type: 'response.create' });
    await until('cancelled', () => done.length === 2);
    const other = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'b', priority: 0 });
    socket.send({ type: 'response.create' });
    await until('dropped', () => failed.length === 1);
    if (other.type === 'Dispatched') other.lease.release();
    expect([done, failed]).toEqual([['completed', 'cancelled'], ['ERR_FLOW_TTL_EXPIRED']]);
    expect(idle(flow)).toBe(true);
  });

  it('a response that is evicted is stopped at the server, and the next one runs there', async () => {
    const flow = new FlowController({
      maxConcurrency: 1,
      eviction: inFlightEviction(),
      bands: [{ priority: 1 }, { priority: -1 }],
    });
    const { base, model } = await startProxy('realtime', flow, ({ fields }) => Number(fields.event_id));
    const [batch, chat] = [await connect(base), await connect(base)];
    batch.send({ type: 'response.create', event_id: '-1' });
    await batch.next('response.output_text.delta');
    chat.send({ type: 'response.create', event_id: '1' });
    expect(await batch.next('response.done')).toMatchObject({ response: { status: 'failed' } });
    expect(await chat.next('response.done')).toMatchObject({ response: { status: 'completed' } });
    const metrics = await (await fetch(`${model.url}/metrics`)).text();
    expect(metrics).toContain('demo:aborted_requests_total{model_name="default-model"} 1');
    await until('given back', () => idle(flow));
  });

  it('what a server begins by itself takes a seat, and is stopped when there is none for it', async () => {
    const flow = new FlowController({ maxConcurrency: 1, defaultRequestTtl: 20 });
    const { base } = await startProxy('realtime', flow);
    const client = await connect(base);
    client.send({ type: 'session.update', session: { audio: { input: { turn_detection: { type: 'server_vad' } } } } });
    client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' });
    await client.next('response.created');
    expect(flow.stats().inFlight).toBe(1);
    expect(await client.next('response.done')).toMatchObject({ response: { status: 'completed' } });
    await until('given back', () => idle(flow));
    const other = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'b', priority: 0 });
    client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' });
    expect(await client.next('response.done')).toMatchObject({ response: { status: 'failed' } });
    if (other.type === 'Dispatched') other.lease.release();
    await until('given back', () => idle(flow));
  });

  it('a server that dies ends the turn, and closes the socket', async () => {
    const flow = new FlowController({ maxConcurrency: 1 });
    const { base, model } = await startProxy('responses', flow);
    const client = await connect(base);
    client.send(create);
    await client.next('response.created');
    model.child.kill('SIGKILL');
    expect(await client.next('response.failed')).toMatchObject({ response: { error: { code: 'upstream_failed' } } });
    await until('closed', () => client.closed !== undefined);
    expect([client.closed?.code, idle(flow)]).toEqual([1011, true]);
  });

  it('a client that floods behind a turn that waits is not read beyond the bound, and is noticed when it goes', async () => {
    const flow = new FlowController({ maxConcurrency: 1 });
    const { base } = await startProxy('realtime', flow);
    await flow.enqueue({ byteSize: 1 }, { fairnessId: 'b', priority: 0 });
    const client = await connect(base);
    client.send({ type: 'response.create' });
    const audio = { type: 'input_audio_buffer.append', audio: 'A'.repeat(100_000) };
    for (let i = 0; i < 400; i++) client.send(audio);
    await until('it waits', () => flow.stats().waiting === 1);
    await until('it stands', () => client.socket.bufferedAmount > 1_000_000);
    client.socket.terminate();
    // At the next ping.
    await until('it has left', () => flow.stats().waiting === 0);
  });
});

it('a thousand idle sockets hold no seat, and less than 40 kB each, their clients included', async () => {
  const { flow, url } = await startTurns();
  const bytes = (): number => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  await connect(url);
  const before = bytes();
  const clients = await Promise.all(Array.from({ length: 1_000 }, () => connect(url)));
  for (const client of clients) client.send(create);
  await Promise.all(clients.map((client) => client.next('response.completed')));
  expect(flow.stats()).toMatchObject({ inFlight: 0, waiting: 0, dispatched: 1_000, released: 1_000 });
  expect((bytes() - before) / 1_000).toBeLessThan(40_000);
});
