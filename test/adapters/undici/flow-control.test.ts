/** Calls through undici to a real server. */
import { EventEmitter, once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { Agent, type Dispatcher, fetch, interceptors, request } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FlowContext, type FlowControlOptions, flowControl } from '../../../src/adapters/undici/index.js';
import { FlowConfigError, FlowControlError, FlowEvictedError, inFlightEviction } from '../../../src/index.js';
import { type CountingGate, countingGate } from '../../integration/support/counting-gate.js';
import { deferred, until } from '../../integration/support/until.js';

type Listener = (req: IncomingMessage, res: ServerResponse) => void;
type Options = FlowControlOptions<Dispatcher.DispatchOptions>;

async function upstream(listener: Listener = (_req, res) => void res.end('ok')) {
  const server = http.createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `http://localhost:${(server.address() as AddressInfo).port}` };
}

function controlled(gate: CountingGate, options: Options = {}, agentOptions: Agent.Options = {}): Dispatcher {
  const agent = new Agent(agentOptions);
  onTestFinished(() => agent.destroy());
  return agent.compose(flowControl(gate, options));
}

/** An upstream that answers `/held` when told, and one call that holds the only seat. */
async function busy(options: Options = {}, gate = countingGate(1), agentOptions: Agent.Options = {}) {
  const held = deferred();
  const paths: string[] = [];
  const { url } = await upstream((req, res) => {
    paths.push(req.url!);
    void (req.url === '/held' ? held.promise : Promise.resolve()).then(() => res.end('ok'));
  });
  const dispatcher = controlled(gate, options, agentOptions);
  const first = request(`${url}/held`, { dispatcher });
  await until('the first is upstream', () => paths.length === 1);
  async function finish(): Promise<void> {
    held.resolve();
    await (await first).body.text();
    await until('all is released', () => gate.flow.stats().inFlight === 0 && gate.flow.stats().waiting === 0);
    expect(gate.releases.every((count) => count === 1)).toBe(true);
  }
  return { gate, url, dispatcher, paths, finish };
}

const flowOf = (context: object) => (context as FlowContext).flow;

describe('leases', () => {
  it('a call waits for one, and holds it until its response has arrived', async () => {
    const end = deferred();
    const { url } = await upstream((_req, res) => {
      res.write('one ');
      void end.promise.then(() => res.end('two'));
    });
    const gate = countingGate(1);
    const dispatcher = controlled(gate);
    const first = await request(url, { dispatcher });
    const second = request(url, { dispatcher });
    await until('the second waits', () => gate.flow.stats().waiting === 1);
    expect(gate.flow.stats().inFlight).toBe(1);
    end.resolve();
    expect(await first.body.text()).toBe('one two');
    expect(await (await second).body.text()).toBe('one two');
    expect(flowOf((await second).context)!.queuedMs).toBeGreaterThan(0);
    expect(gate.flow.stats().inFlight).toBe(0);
    expect(gate.releases).toEqual([1, 1]);
  });

  it('is in the context of the result', async () => {
    const end = deferred();
    const { url } = await upstream((_req, res) => {
      res.flushHeaders();
      void end.promise.then(() => res.end('ok'));
    });
    const dispatcher = controlled(countingGate(1), { classify: () => ({ fairnessId: 'tenant-a', priority: 3 }) });
    const { context, body } = await request(url, { dispatcher });
    const { lease } = flowOf(context)!;
    expect([lease.fairnessId, lease.priority, lease.isReleased]).toEqual(['tenant-a', 3, false]);
    end.resolve();
    await body.text();
    expect(lease.isReleased).toBe(true);
  });

  it.each<[string, Listener]>([
    ['short', (_req, res) => void res.end('{"error":"no"}')],
    ['empty', (_req, res) => void res.writeHead(500, { 'content-length': '0' }).end()],
    ['204', (_req, res) => void res.writeHead(204).end()],
  ])('a response that nobody reads gives it back once it has come: %s', async (_, listener) => {
    const gate = countingGate(1);
    const { url } = await upstream(listener);
    const dispatcher = controlled(gate);
    const kept: unknown[] = [];
    for (const ask of [request, fetch, request]) kept.push(await ask(url, { dispatcher }));
    await until('all is released', () => gate.flow.stats().inFlight === 0);
    expect([kept.length, gate.releases]).toEqual([3, [1, 1, 1]]);
  });

  it('works with fetch', async () => {
    const gate = countingGate(1);
    const { url } = await upstream((req, res) => void req.pipe(res));
    const dispatcher = controlled(gate);
    const answers = ['one', 'two', 'three'].map(async (body) =>
      (await fetch(url, { dispatcher, method: 'POST', body })).text(),
    );
    expect(await Promise.all(answers)).toEqual(['one', 'two', 'three']);
    await until('all is released', () => gate.flow.stats().inFlight === 0);
    expect(gate.releases).toEqual([1, 1, 1]);
  });

  it.each<[string, (url: string, dispatcher: Dispatcher) => Promise<unknown>]>([
    ['nobody listens', (_, dispatcher) => request('http://localhost:1', { dispatcher })],
    [
      'the response breaks off',
      async (url, dispatcher) => (await request(`${url}/broken`, { dispatcher })).body.text(),
    ],
    [
      'the caller destroys the body',
      async (url, dispatcher) => {
        const { body } = await request(`${url}/endless`, { dispatcher });
        body.destroy(new Error('enough'));
        await once(body, 'close');
      },
    ],
    [
      'the caller aborts',
      async (url, dispatcher) => {
        const caller = new AbortController();
        const { body } = await request(`${url}/endless`, { dispatcher, signal: caller.signal });
        caller.abort();
        await body.text();
      },
    ],
    [
      'undici refuses the options',
      (url, dispatcher) => request(url, { dispatcher, headers: { expect: '100-continue' } }),
    ],
  ])('comes back when %s', async (_, call) => {
    const gate = countingGate(1);
    const { url } = await upstream((req, res) => {
      res.write('one');
      if (req.url === '/broken') setImmediate(() => res.destroy());
    });
    await call(url, controlled(gate)).catch(() => {});
    await until('it is released', () => gate.flow.stats().inFlight === 0);
    expect(gate.releases).toEqual([1]);
  });

  it('comes back, where it was taken, when the call is aborted before it begins', async () => {
    const gate = countingGate(1);
    const { url } = await upstream((_, res) => res.end());
    const call = request(url, { dispatcher: controlled(gate), signal: AbortSignal.abort() });
    await expect(call).rejects.toThrow();
    await until('no seat is taken', () => gate.flow.stats().inFlight === 0);
    // Undici 8 may end the call before a seat is asked for.
    expect([[], [1]]).toContainEqual(gate.releases);
  });

  it('releaseOn manual leaves it to the caller', async () => {
    const gate = countingGate(1);
    const { url } = await upstream();
    const { context, body } = await request(url, { dispatcher: controlled(gate, { releaseOn: 'manual' }) });
    await body.text();
    expect(gate.flow.stats().inFlight).toBe(1);
    flowOf(context)!.lease.release();
    expect(gate.flow.stats().inFlight).toBe(0);
  });

  it('an upgraded connection holds it until the socket closes', async () => {
    const gate = countingGate(1);
    const { server, url } = await upstream();
    server.on('upgrade', (_req, socket: Socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
      socket.pipe(socket);
    });
    const { socket } = await controlled(gate).upgrade({
      path: '/',
      protocol: 'echo',
      origin: url,
    } as Dispatcher.UpgradeOptions);
    socket.write('hello');
    expect(String((await once(socket, 'data'))[0])).toBe('hello');
    expect(gate.flow.stats().inFlight).toBe(1);
    socket.end();
    await until('it is released', () => gate.flow.stats().inFlight === 0);
    expect(gate.releases).toEqual([1]);
  });

  it('skipped calls need none, the same controller twice gives one', async () => {
    const gate = countingGate(1);
    const { url } = await upstream();
    const twice = controlled(gate, { skip: ({ path }) => path === '/free' }).compose(flowControl(gate));
    expect(await (await request(`${url}/once`, { dispatcher: twice })).body.text()).toBe('ok');
    expect(gate.releases).toEqual([1]);
    const once = controlled(gate, { skip: ({ path }) => path === '/free' });
    const { context, body } = await request(`${url}/free`, { dispatcher: once });
    // Without a lease the context is undici's own: undefined, or null in its version 8.
    expect([await body.text(), context ?? undefined]).toEqual(['ok', undefined]);
    expect(gate.releases).toEqual([1]);
  });

  it('each attempt of a retry takes its own, a retry inside shares one', async () => {
    let attempts = 0;
    const { url } = await upstream((_req, res) => {
      attempts += 1;
      res.statusCode = attempts % 2 === 1 ? 503 : 200;
      res.end('done');
    });
    const [outside, inside] = [countingGate(1), countingGate(1)];
    const agent = new Agent();
    onTestFinished(() => agent.destroy());
    const retry = interceptors.retry({ minTimeout: 1, maxTimeout: 1 });
    expect(await (await request(url, { dispatcher: agent.compose(flowControl(outside), retry) })).body.text()).toBe(
      'done',
    );
    expect(await (await request(url, { dispatcher: agent.compose(retry, flowControl(inside)) })).body.text()).toBe(
      'done',
    );
    expect([outside.releases, inside.releases]).toEqual([[1, 1], [1]]);
  });
});

describe('aborts in the queue', () => {
  it.each<[string, (url: string, dispatcher: Dispatcher) => [Promise<unknown>, () => void]]>([
    [
      'an AbortSignal',
      (url, dispatcher) => {
        const caller = new AbortController();
        return [request(url, { dispatcher, signal: caller.signal }), () => caller.abort(new Error('enough'))];
      },
    ],
    [
      'an emitter',
      (url, dispatcher) => {
        const caller = new EventEmitter();
        return [request(url, { dispatcher, signal: caller }), () => void caller.emit('abort')];
      },
    ],
    [
      'fetch',
      (url, dispatcher) => {
        const caller = new AbortController();
        return [fetch(url, { dispatcher, signal: caller.signal }), () => caller.abort(new Error('enough'))];
      },
    ],
    [
      'the signal of a bare dispatch',
      (url, dispatcher) => {
        const caller = new AbortController();
        const opts = { origin: url, path: '/', method: 'GET', signal: caller.signal };
        return [ending(dispatcher, opts), () => caller.abort(new Error('enough'))];
      },
    ],
    [
      'the controller of a bare dispatch',
      (url, dispatcher) => {
        let controller: Dispatcher.DispatchController | undefined;
        const call = ending(
          dispatcher,
          { origin: url, path: '/', method: 'GET' },
          {
            onRequestStart: (given) => {
              controller = given;
            },
          },
        );
        return [call, () => controller!.abort(new Error('enough'))];
      },
    ],
  ])('%s takes the call out at once, and it is never sent', async (_, call) => {
    const { gate, url, dispatcher, paths, finish } = await busy();
    const [answer, abort] = call(`${url}`, dispatcher);
    const failure = answer.then(
      () => undefined,
      (error: unknown) => error,
    );
    await until('it waits', () => gate.flow.stats().waiting === 1);
    abort();
    expect(await failure).toBeInstanceOf(Error);
    expect(gate.flow.stats()).toMatchObject({ waiting: 0, outcomes: { EvictedContextCancelled: 1 } });
    await finish();
    expect(paths).toEqual(['/held']);
  });

  it('a body that fails while it waits fails the call', async () => {
    const { gate, url, dispatcher, finish } = await busy();
    const body = new Readable({ read() {} });
    const call = request(url, { dispatcher, method: 'POST', body });
    await until('it waits', () => gate.flow.stats().waiting === 1);
    body.destroy(new Error('no such file'));
    await expect(call).rejects.toThrow('no such file');
    await finish();
  });

  it('a call that has its lease but no connection yet can be aborted', async () => {
    const { gate, url, dispatcher, paths, finish } = await busy({}, countingGate(2, { limits: {} }), {
      connections: 1,
      pipelining: 1,
    });
    const caller = new AbortController();
    const third = { origin: url, path: '/third', method: 'GET', signal: caller.signal };
    const second = request(`${url}/second`, { dispatcher });
    const failure = ending(dispatcher, third).catch((error: unknown) => error);
    await until('one waits', () => gate.flow.stats().waiting === 1);
    caller.abort(new Error('enough'));
    expect(await failure).toMatchObject({ message: 'enough' });
    await finish().catch(() => {});
    expect(await (await second).body.text()).toBe('ok');
    expect(paths).toEqual(['/held', '/second']);
  });
});

/** The end of a bare dispatch. */
function ending(dispatcher: Dispatcher, opts: object, handler: Dispatcher.DispatchHandler = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    dispatcher.dispatch(opts as Dispatcher.DispatchOptions, {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData() {},
      onResponseEnd: () => resolve(),
      onResponseError: (_, error) => reject(error),
      ...handler,
    });
  });
}

describe('drops', () => {
  /** One call runs, one waits, and there is no room for more. */
  async function full(options: Options = {}) {
    const { finish, ...running } = await busy(options, countingGate(1, { limits: { maxRequests: 1 } }));
    const second = request(running.url, { dispatcher: running.dispatcher });
    await until('one waits', () => running.gate.flow.stats().waiting === 1);
    return {
      ...running,
      finish: async () => {
        const finished = finish();
        await (await second).body.text();
        await finished;
      },
    };
  }

  it('fail the call with a FlowControlError', async () => {
    const { url, dispatcher, finish } = await full({ contract: 'llm-d', random: () => 0 });
    const error: unknown = await request(url, { dispatcher }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FlowControlError);
    expect(error).toMatchObject({ code: 'ERR_FLOW_SATURATED', status: 429, headers: { 'retry-after': '1' } });
    await expect(fetch(url, { dispatcher })).rejects.toMatchObject({ cause: { code: 'ERR_FLOW_SATURATED' } });
    await finish();
  });

  it('onDrop respond makes them responses, which clients of model APIs know how to retry', async () => {
    const { url, dispatcher, finish } = await full({ onDrop: 'respond', body: 'openai', random: () => 0 });
    const body = Readable.from(['unsent']);
    const { statusCode, headers, body: answer } = await request(url, { dispatcher, method: 'POST', body });
    expect([statusCode, headers['retry-after']]).toEqual([429, '1']);
    expect(await answer.json()).toMatchObject({ error: { code: 'ERR_FLOW_SATURATED' } });
    expect(body.destroyed).toBe(true);
    const response = await fetch(url, { dispatcher });
    expect([response.status, response.statusText]).toEqual([429, 'Too Many Requests']);
    expect(await response.json()).toMatchObject({ error: { code: 'ERR_FLOW_SATURATED' } });
    expect((await request(url, { dispatcher, method: 'HEAD' })).statusCode).toBe(429);
    await finish();
  });

  it('an expired TTL fails a call that waited', async () => {
    const { url, dispatcher, finish } = await busy({}, countingGate(1, { defaultRequestTtl: '10ms' }));
    await expect(request(url, { dispatcher })).rejects.toMatchObject({ code: 'ERR_FLOW_TTL_EXPIRED', status: 503 });
    await finish();
  });

  it.each([
    ['at once', { limits: { maxRequests: 0 } }],
    ['after it waited', { defaultRequestTtl: '10ms' }],
  ])('that are answered %s are for a retry in front what an answer of a server is', async (_when, limits) => {
    const { gate, url, dispatcher, finish } = await busy({ onDrop: 'respond' });
    gate.flow.reconfigure(limits as object);
    // Its handler throws out of the end of an answer that it wants to repeat, and expects to be told so.
    const retry = interceptors.retry({ minTimeout: 1, maxTimeout: 1, maxRetries: 1 });
    await expect(request(url, { dispatcher: dispatcher.compose(retry) })).rejects.toMatchObject({
      code: 'UND_ERR_REQ_RETRY',
    });
    await finish();
  });

  it('an exception of classify fails the call', async () => {
    const classify = () => {
      throw new Error('no tenant');
    };
    const { url } = await upstream();
    await expect(request(url, { dispatcher: controlled(countingGate(1), { classify }) })).rejects.toThrow('no tenant');
  });

  it('options are checked when it is made', () => {
    expect(() => flowControl(countingGate(1), { trsut: true } as object)).toThrow(FlowConfigError);
    expect(() => flowControl(countingGate(1), { context: { run: () => {} } } as object)).toThrow(
      'context: expected no such option',
    );
  });
});

describe('evictions', () => {
  const options: Options = { classify: ({ path }) => ({ fairnessId: 'a', priority: path === '/premium' ? 100 : -10 }) };

  it.each(['while the server thinks', 'while the response arrives'])('abort the call %s', async (phase) => {
    const gate = countingGate(1, { eviction: inFlightEviction() });
    const arrived = deferred();
    const left = deferred();
    const { url } = await upstream((req, res) => {
      if (req.url === '/premium') return void res.end('premium');
      arrived.resolve();
      res.once('close', () => left.resolve());
      if (phase !== 'while the server thinks') res.write('one');
    });
    const dispatcher = controlled(gate, options);
    const responded = deferred();
    const batch = request(url, { dispatcher }).then(({ body }) => {
      responded.resolve();
      return body.text();
    });
    const failure = batch.catch((error: unknown) => error);
    await arrived.promise;
    if (phase !== 'while the server thinks') await responded.promise;
    const premium = request(`${url}/premium`, { dispatcher });
    expect(await failure).toBeInstanceOf(FlowEvictedError);
    await left.promise;
    expect(await (await premium).body.text()).toBe('premium');
    expect(gate.releases).toEqual([1, 1]);
  });

  it('abort a call whose lease is evicted before the call hears of it', async () => {
    const gate = countingGate(1, { eviction: inFlightEviction() });
    const { url } = await upstream((_req, res) => res.end('ok'));
    const first = gate.flow.tryEnqueue({ byteSize: 1 }, { fairnessId: 'first' });
    const failure = request(url, { dispatcher: controlled(gate, options) }).catch((error: unknown) => error);
    await until('the call waits', () => gate.flow.stats().waiting === 1);
    if (first?.type === 'Dispatched') first.lease.release();
    const premium = gate.flow.enqueue({ byteSize: 1 }, { fairnessId: 'premium', priority: 100 });
    expect(gate.flow.stats().evictedInFlight).toBe(1);
    expect(await failure).toBeInstanceOf(FlowEvictedError);
    expect(await premium).toMatchObject({ type: 'Dispatched' });
  });

  it('a call that has no connection yet gives its seat back at once', async () => {
    const gate = countingGate(2, { eviction: inFlightEviction() });
    const { url, dispatcher, paths, finish } = await busy(
      { classify: ({ path }) => ({ fairnessId: 'a', priority: path === '/batch' ? -10 : 100 }) },
      gate,
      { connections: 1, pipelining: 1 },
    );
    const failure = request(`${url}/batch`, { dispatcher }).catch((error: unknown) => error);
    await until('both have a lease', () => gate.flow.stats().inFlight === 2);
    const premium = request(`${url}/premium`, { dispatcher });
    expect(await failure).toBeInstanceOf(FlowEvictedError);
    await finish().catch(() => {});
    expect(await (await premium).body.text()).toBe('ok');
    expect(paths).toEqual(['/held', '/premium']);
    expect(gate.releases).toEqual([1, 1, 1]);
  });
});

describe('what a call says of itself', () => {
  const flowHeaders = [
    ['X-Gateway-Inference-Fairness-Id', 'tenant-a'],
    ['x-user', 'kept'],
  ] as const;

  it.each<[string, () => Dispatcher.DispatchOptions['headers']]>([
    ['a record', () => Object.fromEntries(flowHeaders)],
    ['a flat list', () => flowHeaders.flat()],
    ['pairs', () => new Map(flowHeaders)],
    [
      'an iterator that can be read once',
      () => flowHeaders.map((pair): [string, string] => [...pair])[Symbol.iterator](),
    ],
  ])('flow headers in %s count where they are trusted, and are not sent', async (_, headers) => {
    const gate = countingGate(1);
    let sent: http.IncomingHttpHeaders | undefined;
    const { url } = await upstream((req, res) => {
      sent = req.headers;
      res.end();
    });
    for (const trust of [true, false])
      await (await request(url, { dispatcher: controlled(gate, { trust }), headers: headers()! })).body.dump();
    expect(gate.keys.map(({ fairnessId }) => fairnessId)).toEqual(['tenant-a', 'default-flow']);
    expect(sent).toMatchObject({ 'x-user': 'kept' });
    expect(sent).not.toHaveProperty('x-gateway-inference-fairness-id');
  });

  it.each<[string, NonNullable<Dispatcher.DispatchOptions['body']> | null, object, number]>([
    ['no body', null, {}, 0],
    ['text', 'höllo', {}, 6],
    ['bytes', Buffer.from('hello'), {}, 5],
    ['a stream of known length', Readable.from(['hello']), { 'content-length': '5' }, 5],
    ['a stream', Readable.from(['hello']), {}, 65_536],
  ])('%s is booked by its length', async (_, body, headers, expected) => {
    const asked: number[] = [];
    const counting = countingGate(1);
    const gate = {
      ...counting,
      enter(given: Parameters<NonNullable<CountingGate['enter']>>[0], key: { fairnessId: string }) {
        asked.push(given.byteSize);
        return counting.enter!(given, key);
      },
    };
    const { url } = await upstream((req, res) => void req.resume().on('end', () => res.end()));
    const { body: answer } = await request(url, {
      dispatcher: controlled(gate),
      method: 'POST',
      body,
      headers: headers as Record<string, string>,
    });
    await answer.dump();
    expect(asked).toEqual([expected]);
  });
});
