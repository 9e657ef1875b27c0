/** What every adapter promises, over real sockets. */
import { AsyncLocalStorage } from 'node:async_hooks';
import http2, { type Http2ServerRequest } from 'node:http2';
import type { Readable, Writable } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RequestContext, RequestFlow } from '../../src/adapters/node/index.js';
import { FlowControlError } from '../../src/index.js';
import { expectComeBack } from '../support/come-back.js';
import type { Host, Io } from './support/application.js';
import { rawConnection } from './support/clients.js';
import { countingGate } from './support/counting-gate.js';
import { hosts, readBody } from './support/hosts.js';
import { type Running, type Setup, start as startHost } from './support/start.js';
import { deferred, until } from './support/until.js';

const events = 'data: 1\n\n';

describe.each(hosts)('$name', (host: Host) => {
  const isHttp1 = host.protocol === 'http1';

  /** Starts the host; at the end of the test every lease must have been released, once. */
  async function start(setup: Setup): Promise<Running> {
    const running = await startHost(host, { ...setup, options: { random: () => 0, ...setup.options } });
    onTestFinished(async () => {
      await settled(running);
      expect(running.gate.releases.filter((count) => count !== 1)).toEqual([]);
    });
    return running;
  }

  const ok = ({ send }: Io): void => send(200, 'ok');

  /** A handler that holds its request until told; `held` are those that run, in order. */
  function holding() {
    const held: { io: Io; finish: () => void }[] = [];
    async function handler(io: Io): Promise<void> {
      const end = deferred();
      held.push({ io, finish: () => end.resolve() });
      io.flow?.signal.addEventListener('abort', () => end.resolve(), { once: true });
      await end.promise;
      io.send(200, `finished ${held.length}`);
    }
    return { held, handler };
  }

  /** A host with one request running and one waiting, and no room for more. `finish` lets both go. */
  async function full(held: readonly { finish: () => void }[], setup: Setup) {
    const running = await start({ gate: countingGate(1, { limits: { maxRequests: 1 } }), ...setup });
    const first = running.client.request();
    await until('one runs', () => held.length === 1);
    const second = running.client.request();
    await until('one waits', () => running.gate.flow.stats().waiting === 1);
    async function finish(): Promise<void> {
      held[0]!.finish();
      await first.text;
      await until('the other runs', () => held.length === 2);
      held[1]!.finish();
      await second.text;
    }
    return { ...running, finish };
  }

  describe('leases', () => {
    it('one is released when its response has been sent', async () => {
      const seen: RequestFlow[] = [];
      const { client, gate } = await start({
        handler(io) {
          seen.push(io.flow!);
          io.send(200, `${gate.flow.stats().inFlight} in flight`);
        },
      });
      const { status, text, headers } = client.request();
      expect(await status).toBe(200);
      expect(await text).toBe('1 in flight');
      expect((await headers)['x-llm-d-flow-queue-duration-ms']).toBe('0');
      await until('the lease is released', () => gate.flow.stats().inFlight === 0);
      expect(seen[0]!.queuedMs).toBe(0);
      expect(seen[0]!.lease.isReleased).toBe(true);
      expect(seen[0]!.signal.aborted).toBe(false);
    });

    it('a streamed response holds it to the end', async () => {
      const end = deferred();
      const { client, gate } = await start({
        async handler({ path, send, stream }) {
          if (path !== '/events') return send(200, 'second');
          const body = stream();
          body.write(events);
          void end.promise.then(() => body.end('data: [DONE]\n\n'));
        },
      });
      const first = client.request({ path: '/events' });
      await until('the first event arrives', () => first.received() === events);
      const second = client.request();
      await until('the second request waits', () => gate.flow.stats().waiting === 1);
      expect(gate.flow.stats().inFlight).toBe(1);
      end.resolve();
      expect(await first.text).toBe(`${events}data: [DONE]\n\n`);
      expect(await second.text).toBe('second');
      expect(Number((await second.headers)['x-llm-d-flow-queue-duration-ms'])).toBeGreaterThanOrEqual(0);
    });

    it('one is released when the handler fails before responding', async () => {
      const errors: unknown[] = [];
      const { client, gate } = await start({
        handler() {
          throw new Error('handler failed');
        },
        onError: (error) => errors.push(error),
      });
      expect(await client.request().status).toBe(500);
      await until('the lease is released', () => gate.flow.stats().inFlight === 0);
      expect(errors).toMatchObject([{ message: 'handler failed' }]);
    });

    it('one is released when the handler breaks its stream off', async () => {
      const { client, gate } = await start({
        async handler({ stream, req }) {
          const body = stream();
          body.on('error', () => {});
          body.write(events);
          await new Promise((resolve) => setImmediate(resolve));
          req.socket.destroy();
        },
      });
      const { status } = client.request();
      await status.catch(() => {});
      await until('the lease is released', () => gate.flow.stats().inFlight === 0 && gate.releases.length === 1);
    });

    it('one is released when a response without a body has been sent, though the upload goes on', async () => {
      const { client, gate } = await start({ handler: ({ send }) => send(204, '') });
      const { status } = client.request({ upload: true });
      expect(await status).toBe(204);
      await until('the lease is released', () => gate.flow.stats().inFlight === 0 && gate.releases.length === 1);
    });

    it('a large body that arrived while waiting is whole', async () => {
      const { client } = await start({ handler: async ({ req, send }) => send(200, `${await readBody(req)} bytes`) });
      const answers = Array.from({ length: 4 }, () => client.request({ body: 'x'.repeat(3_000_000) }));
      for (const { text } of answers) expect(await text).toBe('3000000 bytes');
    });

    it('releaseOn manual leaves it to the handler', async () => {
      const { held, handler } = holding();
      const { client, gate } = await start({ handler, options: { releaseOn: 'manual' } });
      const { text } = client.request();
      await until('the handler runs', () => held.length === 1);
      held[0]!.finish();
      await text;
      const another = client.request();
      await until('another waits', () => gate.flow.stats().waiting === 1);
      expect(gate.flow.stats().inFlight).toBe(1);
      held[0]!.io.flow!.lease.release();
      await until('the other runs', () => held.length === 2);
      another.leave();
      await until('the other is told to stop', () => held[1]!.io.flow!.signal.aborted);
      expect(gate.flow.stats().inFlight).toBe(1);
      held[1]!.io.flow!.lease.release();
    });

    it('skipped requests need none', async () => {
      const { client, gate } = await start({
        handler: ({ flow, send }) => send(200, String(flow)),
        options: { skip: () => true },
      });
      const { text, headers } = client.request();
      expect(await text).toBe('undefined');
      expect(await headers).not.toHaveProperty('x-llm-d-flow-queue-duration-ms');
      expect(gate.releases).toEqual([]);
    });
  });

  describe('clients that leave', () => {
    it.each([
      ['with no body', {}],
      ['with an unread body', { body: 'x'.repeat(1_000) }],
      ['with a large unread body', { body: 'x'.repeat(2_000_000) }],
      ['in the middle of an upload', { upload: true }],
    ])('while queued, %s', async (_, request) => {
      const { held, handler } = holding();
      const { client, gate } = await start({ handler });
      const first = client.request();
      await until('the first runs', () => held.length === 1);
      const second = client.request(request);
      if ('upload' in request) second.upload.write('x'.repeat(1_000));
      await until('the second waits', () => gate.flow.stats().waiting === 1);
      second.leave();
      await until('the second is gone', () => gate.flow.stats().waiting === 0);
      expect(gate.flow.stats().outcomes.EvictedContextCancelled).toBe(1);
      held[0]!.finish();
      await first.text;
      expect(held).toHaveLength(1);
    });

    it('while queued, with a body that was read before', async () => {
      const { held, handler } = holding();
      const { client, gate } = await start({ handler, before: async (req) => void (await readBody(req)) });
      const first = client.request({ body: 'first' });
      await until('the first runs', () => held.length === 1);
      const second = client.request({ body: 'second' });
      await until('the second waits', () => gate.flow.stats().waiting === 1);
      second.leave();
      await until('the second is gone', () => gate.flow.stats().waiting === 0);
      held[0]!.finish();
      await first.text;
      expect(held).toHaveLength(1);
    });

    it('while queued, with a large unread body that began to arrive long before', async () => {
      const { held, handler } = holding();
      const arrived = deferred();
      const { client, gate } = await start({
        handler,
        async before(req) {
          if (req.url !== '/late') return;
          // HTTP/2 keeps it in its window until somebody reads.
          if (isHttp1) await until('some of the body arrives', () => (req as Readable).readableLength > 0);
          for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
          arrived.resolve();
        },
      });
      const first = client.request();
      await until('the first runs', () => held.length === 1);
      const second = client.request({ path: '/late', body: 'x'.repeat(2_000_000) });
      await arrived.promise;
      await until('the second waits', () => gate.flow.stats().waiting === 1);
      second.leave();
      await until('the second is gone', () => gate.flow.stats().waiting === 0);
      held[0]!.finish();
      await first.text;
    });

    it('before flow control was reached', async () => {
      const reached = deferred();
      const proceed = deferred();
      const { client, gate } = await start({
        handler: ok,
        async before(req) {
          if (req.url !== '/late') return;
          reached.resolve();
          await proceed.promise;
        },
      });
      const late = client.request({ path: '/late' });
      await reached.promise;
      late.leave();
      await expect(late.status).rejects.toThrow();
      // A round trip on the same server: its side of the first has closed by then.
      expect(await client.request().status).toBe(200);
      await until('the round trip is over', () => gate.flow.stats().inFlight === 0);
      proceed.resolve();
      expect(await client.request().status).toBe(200);
      expect(gate.keys.length).toBe(2);
    });

    it('while streaming: the signal aborts and the lease is released', async () => {
      const flows: RequestFlow[] = [];
      const { client, gate } = await start({
        handler({ flow, stream }) {
          flows.push(flow!);
          const body = stream();
          body.on('error', () => {});
          body.write(events);
        },
      });
      const { received, leave } = client.request();
      await until('an event arrives', () => received() === events);
      expect(flows[0]!.signal.aborted).toBe(false);
      leave();
      await until('the lease is released', () => gate.flow.stats().inFlight === 0);
      expect(flows[0]!.signal.aborted).toBe(true);
      expect(flows[0]!.signal.reason).toMatchObject({ name: 'AbortError', status: 499, expose: true });
    });

    it.runIf(!isHttp1)(
      'from a stream: the signal aborts at once, and the lease is released when the session is no longer at work',
      async () => {
        const order: string[] = [];
        const { client, gate } = await start({
          async handler({ req, flow }) {
            flow!.signal.addEventListener('abort', () => order.push('signal'));
            (req as Http2ServerRequest).stream.on('aborted', () => {
              order.push(`aborted, ${gate.flow.stats().inFlight} in flight`);
              queueMicrotask(() => order.push(`the end of its turn, ${gate.flow.stats().inFlight} in flight`));
            });
            await new Promise((resolve) => flow!.signal.addEventListener('abort', resolve));
          },
        });
        const { upload, leave } = client.request({ upload: true });
        upload.write('the beginning');
        await until('it runs', () => gate.flow.stats().inFlight === 1);
        leave();
        await until('the lease is released', () => gate.flow.stats().inFlight === 0);
        expect(order).toEqual(['signal', 'aborted, 1 in flight', 'the end of its turn, 1 in flight']);
      },
    );

    it('before it sent what it announced: that was not booked', async () => {
      const { held, handler } = holding();
      const { client, gate } = await start({ handler });
      const first = client.request();
      await until('one runs', () => held.length === 1);
      const announced = client.request({ upload: true, headers: { 'content-length': '999999999' } });
      await until('one waits', () => gate.flow.stats().waiting === 1);
      expect(gate.flow.stats().waitingBytes).toBe(2_097_152);
      announced.leave();
      await until('none waits', () => gate.flow.stats().waiting === 0);
      held[0]!.finish();
      await first.text;
    });

    it('during an upload that the handler reads', async () => {
      const flows: RequestFlow[] = [];
      const { client, gate } = await start({
        async handler({ req, flow, send }) {
          flows.push(flow!);
          send(200, `${await readBody(req)} bytes`);
        },
      });
      const { upload, leave } = client.request({ upload: true });
      upload.write('x'.repeat(1_000));
      await until('the handler runs', () => flows.length === 1);
      leave();
      await until('the lease is released', () => gate.flow.stats().inFlight === 0);
      // HTTP/2 may end the broken-off body like a whole one, and then the handler has answered it.
      if (isHttp1) expect(flows[0]!.signal.aborted).toBe(true);
    });
  });

  describe('drops', () => {
    it('a request that does not fit is answered at once', async () => {
      const { held, handler } = holding();
      const { client, finish } = await full(held, { handler });
      const second = client.request({ body: '{}' });
      expect(await second.status).toBe(429);
      expect(await second.headers).toMatchObject({
        'content-type': expect.stringContaining('application/problem+json'),
        'cache-control': 'no-store',
        'x-llm-d-request-dropped-reason': 'rejected-saturated',
        'x-llm-d-flow-queue-duration-ms': '0',
      });
      expectComeBack(await second.headers);
      // 16 KiB are drained rather than the connection closed.
      expect((await second.headers).connection).not.toBe('close');
      expect(JSON.parse(await second.text)).toMatchObject({
        status: 429,
        detail: 'At most 1 requests may wait, and 1 are waiting.',
        reason: 'global-max-requests',
      });
      const head = client.request({ method: 'HEAD' });
      expect(await head.status).toBe(429);
      expect(await head.text).toBe('');
      await finish();
    });

    it('a refused upload does not go on', async () => {
      const { held, handler } = holding();
      const { client, finish } = await full(held, { handler });
      const second = client.request({ upload: true });
      second.upload.on('error', () => {});
      second.upload.write('x'.repeat(1_000));
      expect(await second.status).toBe(429);
      expect((await second.headers).connection).toBe(isHttp1 ? 'close' : undefined);
      await until('the upload is cut off', () => second.upload.destroyed);
      await finish();
    });

    it.each([
      ['gateway-api', 503],
      ['llm-d', 429],
    ] as const)('an expired TTL under the %s contract is %d', async (contract, status) => {
      const { held, handler } = holding();
      const gate = countingGate(1, { defaultRequestTtl: '20ms' });
      const { client } = await start({ handler, gate, options: { contract, body: 'openai' } });
      const first = client.request();
      await until('the first runs', () => held.length === 1);
      const second = client.request();
      expect(await second.status).toBe(status);
      expect((await second.headers)['x-llm-d-request-dropped-reason']).toBe('rejected-ttl-expired');
      expect(Number((await second.headers)['x-llm-d-flow-queue-duration-ms'])).toBeGreaterThanOrEqual(20);
      expect(JSON.parse(await second.text)).toMatchObject({ error: { code: 'ERR_FLOW_TTL_EXPIRED', param: null } });
      held[0]!.finish();
      await first.text;
    });

    it.each([
      ['gateway-api', 500, undefined],
      ['llm-d', 503, 'rejected-shutting-down'],
    ] as const)('shutting down under the %s contract is %d', async (contract, status, reason) => {
      const { held, handler } = holding();
      const { client, gate } = await start({ handler, options: { contract } });
      const first = client.request();
      await until('the first runs', () => held.length === 1);
      const second = client.request();
      await until('the second waits', () => gate.flow.stats().waiting === 1);
      await gate.flow.close();
      const third = client.request();
      for (const { status: answered, headers } of [second, third]) {
        expect(await answered).toBe(status);
        expect((await headers)['x-llm-d-request-dropped-reason']).toBe(reason);
        expect((await headers).connection).toBe(isHttp1 ? 'close' : undefined);
      }
      held[0]!.finish();
      expect(await first.status).toBe(200);
    });

    it('onDrop throw hands a FlowControlError to the host, whose default answer is right', async () => {
      const errors: unknown[] = [];
      const { held, handler } = holding();
      const { client, finish } = await full(held, {
        handler,
        options: { onDrop: 'throw' },
        onError: (error) => errors.push(error),
      });
      const second = client.request();
      expect(await second.status).toBe(429);
      expect(await second.headers).toMatchObject({
        'x-llm-d-request-dropped-reason': 'rejected-saturated',
      });
      expectComeBack(await second.headers);
      expect((await second.headers)['content-type'] ?? '').not.toContain('problem');
      expect(errors).toHaveLength(1);
      expect(errors[0]).toBeInstanceOf(FlowControlError);
      expect(errors[0]).toMatchObject({ code: 'ERR_FLOW_SATURATED', outcome: 'RejectedCapacity', status: 429 });
      await finish();
    });

    it('an exception of classify is the host’s to answer', async () => {
      const { client, gate } = await start({
        handler: ok,
        options: {
          classify() {
            throw Object.assign(new Error('no tenant'), { status: 401, expose: true });
          },
        },
      });
      expect(await client.request().status).toBeGreaterThanOrEqual(400);
      expect(gate.keys).toEqual([]);
    });
  });

  describe('headers', () => {
    const sent = {
      'X-Gateway-Inference-Fairness-Id': 'tenant-a',
      'x-gateway-inference-objective': 'premium',
      'x-slo-ttft-ms': '250',
      'X-Gateway-Destination-Endpoint': '10.0.0.1:80',
      'x-user-data': 'kept',
    };
    const lowerCased = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name.toLowerCase(), value]));
    const objectives = { premium: 100 };

    function echo({ req, flow, send }: Io): void {
      const { fairnessId, priority } = flow!.lease;
      send(200, JSON.stringify({ fairnessId, priority, headers: req.headers, rawHeaders: req.rawHeaders }));
    }

    it.each([
      ['not believed by default', undefined, { fairnessId: 'default-flow', priority: 0 }],
      ['believed where trusted', true, { fairnessId: 'tenant-a', priority: 100 }],
      ['believed where a function says so', () => true, { fairnessId: 'tenant-a', priority: 100 }],
      ['not believed where a function says so', () => false, { fairnessId: 'default-flow', priority: 0 }],
    ])('%s, and removed in any case', async (_, trust, key) => {
      const { client } = await start({ handler: echo, options: { trust, objectives } });
      const { headers, rawHeaders, ...used } = JSON.parse(
        await client.request({ headers: isHttp1 ? sent : lowerCased }).text,
      );
      expect(used).toEqual(key);
      expect(Object.keys(headers).filter((name) => /gateway|slo/.test(name))).toEqual([]);
      expect(rawHeaders.filter((text: string) => /gateway|slo|tenant-a/i.test(text))).toEqual([]);
      expect(headers['x-user-data']).toBe('kept');
      expect(rawHeaders[rawHeaders.indexOf('x-user-data') + 1]).toBe('kept');
    });

    it('classify replaces them', async () => {
      const { client } = await start({
        handler: echo,
        options: { trust: true, objectives, classify: () => ({ fairnessId: 'tenant-b', priority: -5 }) },
      });
      const { headers, ...used } = JSON.parse(await client.request({ headers: lowerCased }).text);
      expect(used).toMatchObject({ fairnessId: 'tenant-b', priority: -5 });
      expect(headers).not.toHaveProperty('x-gateway-inference-fairness-id');
    });
  });

  describe('a context', () => {
    it('holds the flow of a request while its handler runs, be it dispatched at once or after a wait, and not of others', async () => {
      const context = new AsyncLocalStorage<RequestContext>();
      const { held, handler } = holding();
      const tenants = ['acme', 'zeta'];
      const options = {
        context,
        classify: () => ({ fairnessId: tenants.shift() ?? 'nobody', priority: 3, affinityKey: 'key' }),
      };
      const seen: unknown[] = [];
      async function looking(io: Io): Promise<void> {
        await handler(io);
        const { fairnessId, priority, affinityKey, sessionId, signal } = context.getStore() ?? {};
        seen.push({ fairnessId, priority, affinityKey, sessionId, isSignal: signal === io.flow?.signal });
      }
      const { finish } = await full(held, { handler: looking, options });
      await finish();
      const common = { priority: 3, affinityKey: 'key', sessionId: undefined, isSignal: true };
      await until('both have run', () => seen.length === 2);
      expect(seen).toEqual([
        { fairnessId: 'acme', ...common },
        { fairnessId: 'zeta', ...common },
      ]);
      expect(context.getStore()).toBeUndefined();
    });

    it('holds nothing for a request that is skipped', async () => {
      const context = new AsyncLocalStorage<RequestContext>();
      const seen: unknown[] = [];
      const { client } = await start({
        handler(io) {
          seen.push(context.getStore());
          io.send(200, 'ok');
        },
        options: { context, skip: () => true },
      });
      expect(await client.request().status).toBe(200);
      expect(seen).toEqual([undefined]);
    });
  });

  describe.runIf(!isHttp1)('HTTP/2', () => {
    it.each([
      ['ended', true],
      ['not ended', false],
    ])('a client closes a stream without error that it did not read, the response %s', async (_, isEnded) => {
      let request: Http2ServerRequest | undefined;
      const { client, gate } = await start({
        handler({ req, stream }) {
          request = req as Http2ServerRequest;
          const body = stream();
          body.on('error', () => {});
          body.write('x'.repeat(1_000_000));
          if (isEnded) body.end();
        },
      });
      const { status, pause, leave } = client.request();
      pause();
      expect(await status).toBe(200);
      leave(http2.constants.NGHTTP2_NO_ERROR);
      await until('the lease is released', () => gate.flow.stats().inFlight === 0);
      // Node says so of a response that has not ended; one that has must be destroyed first. Hono ends it when the
      // client has read it.
      expect(request!.stream.destroyed).toBe(isEnded && !host.name.startsWith('Hono'));
    });
  });

  describe.runIf(isHttp1)('HTTP/1.1', () => {
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const post = (path: string, body: string) =>
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

    it.each([
      ['without bodies', get('/b')],
      ['with unread bodies', post('/b', 'x'.repeat(500))],
    ])('a client with pipelined requests %s leaves', async (_, rest) => {
      const { held, handler } = holding();
      const gate = countingGate(2);
      const { port } = await start({ handler, gate });
      const { socket } = rawConnection(port);
      socket.write(get('/a') + rest + rest + rest);
      await until('two run and two wait', () => held.length === 2 && gate.flow.stats().waiting === 2);
      socket.destroy();
      await until('all are gone', () => gate.flow.stats().waiting === 0 && gate.flow.stats().inFlight === 0);
      expect(held.every(({ io }) => io.flow!.signal.aborted)).toBe(true);
    });

    it('a client half-closes its connection while it waits', async () => {
      const { held, handler } = holding();
      const { port, gate, client } = await start({ handler });
      const first = client.request();
      await until('the first runs', () => held.length === 1);
      const { socket } = rawConnection(port);
      socket.write(get('/b'));
      await until('it waits', () => gate.flow.stats().waiting === 1);
      socket.end();
      await until('it is gone', () => gate.flow.stats().waiting === 0);
      held[0]!.finish();
      await first.text;
    });

    it('Expect: 100-continue waits for the lease where the host hands checkContinue on', async () => {
      const { held, handler } = holding();
      const { port, gate, client } = await start({
        async handler(io) {
          if (io.path === '/upload') io.send(200, `${await readBody(io.req)} bytes`);
          else await handler(io);
        },
        prepare: (server) => void server.on('checkContinue', (req, res) => server.emit('request', req, res)),
      });
      const first = client.request();
      await until('the first runs', () => held.length === 1);
      const { socket, received } = rawConnection(port);
      socket.write('POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n');
      await until('it waits', () => gate.flow.stats().waiting === 1);
      expect(received()).toBe('');
      held[0]!.finish();
      await first.text;
      await until('it may go on', () => received() === 'HTTP/1.1 100 Continue\r\n\r\n');
      socket.write('hello');
      await until('it is answered', () => received().endsWith('5 bytes'));
    });

    it('Expect: 100-continue is refused without an upload', async () => {
      const { held, handler } = holding();
      const { port, finish } = await full(held, {
        handler,
        prepare: (server) => void server.on('checkContinue', (req, res) => server.emit('request', req, res)),
      });
      const { socket, received } = rawConnection(port);
      socket.write('POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n');
      await until('it is refused', () => received().startsWith('HTTP/1.1 429'));
      expect(received().toLowerCase()).toContain('connection: close');
      await finish();
    });

    it('Node’s own 100 Continue is not repeated', async () => {
      const { port } = await start({ handler: async ({ req, send }) => send(200, `${await readBody(req)} bytes`) });
      const { socket, received } = rawConnection(port);
      socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello');
      await until('it is answered', () => received().endsWith('5 bytes'));
      expect(received().split('100 Continue')).toHaveLength(2);
    });
  });

  describe('a body that is larger than the host takes', () => {
    it('is answered 413, and comes to neither gate nor handler', async () => {
      const { held, handler } = holding();
      const { client, gate } = await start({ handler, options: { maxRequestBytes: 1000 } });
      const large = client.request({ body: 'x'.repeat(2000), headers: { 'content-length': '2000' } });
      expect(await large.status).toBe(413);
      expect(JSON.parse(await large.text)).toMatchObject({ code: 'ERR_FLOW_REQUEST_TOO_LARGE', status: 413 });
      expect([gate.keys.length, held.length]).toEqual([0, 0]);
    });

    it('passes where it is skipped', async () => {
      const { client } = await start({ handler: ok, options: { maxRequestBytes: 1000, skip: () => true } });
      expect(await client.request({ body: 'x'.repeat(2000), headers: { 'content-length': '2000' } }).status).toBe(200);
    });
  });

  // HTTP/2 is not watched: see `uploadState`.
  describe.runIf(isHttp1)('a client that has a seat and does not send its body', () => {
    const reading = async (io: Io): Promise<void> => io.send(200, `${await readBody(io.req)} bytes`);

    it('is answered 408, and the next one runs', async () => {
      const { client, gate } = await start({ handler: reading, options: { uploadIdleMs: 100 } });
      const idle = client.request({ upload: true });
      await until('it runs', () => gate.flow.stats().inFlight === 1);
      const next = client.request();
      expect(await idle.status).toBe(408);
      expect(JSON.parse(await idle.text)).toMatchObject({ code: 'ERR_FLOW_UPLOAD_TIMEOUT', status: 408 });
      expect((await idle.headers).connection).toBe('close');
      expect(await next.status).toBe(200);
    });

    it('stops its handler by the signal', async () => {
      const seen: RequestFlow[] = [];
      const handler = ({ flow }: Io): Promise<void> => {
        seen.push(flow!);
        return new Promise(() => {});
      };
      const { client } = await start({ handler, options: { uploadIdleMs: 100, body: 'openai' } });
      const idle = client.request({ upload: true });
      expect(await idle.status).toBe(408);
      expect(JSON.parse(await idle.text)).toMatchObject({ error: { code: 'ERR_FLOW_UPLOAD_TIMEOUT' } });
      expect(seen[0]!.signal.aborted).toBe(true);
    });

    it('has all the time that it wants once the response has begun', async () => {
      let stream: Writable | undefined;
      const handler = (io: Io): void | Promise<void> => {
        if (io.path !== '/duplex') return reading(io);
        stream = io.stream();
        stream.write(events);
        return undefined;
      };
      const { client } = await start({ handler, gate: countingGate(2), options: { uploadIdleMs: 100 } });
      const duplex = client.request({ upload: true, path: '/duplex' });
      await until('it streams', () => duplex.received() === events);
      // Another one is ended meanwhile.
      expect(await client.request({ upload: true }).status).toBe(408);
      stream!.end(events);
      expect(await duplex.text).toBe(events + events);
      duplex.upload.end();
    });

    it('is not hurried while nobody reads what it sent', async () => {
      const go = deferred();
      const { client } = await start({
        handler: async (io) => {
          await go.promise;
          await reading(io);
        },
        options: { uploadIdleMs: 100 },
      });
      const patient = client.request({ upload: true });
      patient.upload.write('hello');
      const other = client.request({ path: '/skipped' });
      go.resolve();
      patient.upload.end();
      expect(await patient.text).toBe('5 bytes');
      expect(await other.status).toBe(200);
    });
  });
});

/** Nothing runs and nothing waits. */
function settled({ gate }: Running): Promise<void> {
  const { flow } = gate;
  return until(
    () => `zero in flight and waiting, not ${flow.stats().inFlight} and ${flow.stats().waiting}`,
    () => flow.stats().inFlight === 0 && flow.stats().waiting === 0,
  );
}
