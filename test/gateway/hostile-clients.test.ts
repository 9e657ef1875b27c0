/** Nothing that one client sends stops the others. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createGateway, type Gateway, loadGatewayConfig } from '../../src/gateway/index.js';
import { rawConnection } from '../integration/support/clients.js';
import { until } from '../integration/support/until.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { errorOf, fileOf, type Started, startGateway } from './support/gateway.js';
import { serve, startUpstream } from './support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };

function portOf({ gateway }: Started): number {
  return Number(new URL(gateway.url).port);
}

/** A request whose body begins as told and does not go on. */
function stall(
  started: Started,
  head: readonly string[],
  body: Buffer | string = '',
  path = head.includes(audio) ? '/v1/audio/transcriptions' : '/v1/chat/completions',
) {
  const client = rawConnection(portOf(started));
  client.socket.write(`${[`POST ${path} HTTP/1.1`, 'Host: x', ...head].join('\r\n')}\r\n\r\n`);
  client.socket.write(body);
  onTestFinished(() => void client.socket.destroy());
  return client;
}

const json = 'Content-Type: application/json';
const audio = 'Content-Type: audio/wav';

describe('a client that announces a body and does not send it', () => {
  const stalled: [string, string[]][] = [
    ['JSON', [json, 'Content-Length: 1000']],
    ['JSON, asking for permission', [json, 'Content-Length: 1000', 'Expect: 100-continue']],
    ['audio', [audio, 'Content-Length: 1000']],
    ['audio, asking for permission', [audio, 'Content-Length: 1000', 'Expect: 100-continue']],
    ['audio in chunks', [audio, 'Transfer-Encoding: chunked']],
  ];

  it.each(stalled)('holds no seat: %s', async (_what, head) => {
    const started = await startGateway(fileOf([(await startUpstream()).url], { timeouts: { upload: '5s' } }));
    const body = head.some((line) => line.includes('chunked')) ? '1\r\n{\r\n' : '{';
    for (let i = 0; i < 4; i++) stall(started, head, body);
    expect((await started.post(chat)).status).toBe(200);
    expect(started.gateway.flow.stats()).toMatchObject({ inFlight: 0, enqueued: 1 });
  });

  it.each(stalled)('is told after a silence: %s', async (_what, head) => {
    const started = await startGateway(fileOf([(await startUpstream()).url], { timeouts: { upload: '200ms' } }));
    const client = stall(started, head);
    await until('it was told', () => client.received().includes('408'));
    expect(client.received()).toContain('upload_timeout');
  });

  it('counts for what has arrived, and not for what it announced', async () => {
    const limits = { maxRequestBytes: '2Gi', maxReadingBytes: '1Mi' };
    const started = await startGateway(fileOf([(await startUpstream()).url], { limits }));
    const clients = [1, 2, 3].map(() => stall(started, [audio, 'Content-Length: 999999999'], 'RIFF'));
    expect((await started.post(chat)).status).toBe(200);
    expect(clients.map(({ received }) => received())).toEqual(['', '', '']);
  });

  it('is told after a silence, and sends too slowly even if it never is silent', async () => {
    const more = { timeouts: { upload: '200ms' }, limits: { minUploadRate: '1Mi' } };
    const started = await startGateway(fileOf([(await startUpstream()).url], more));
    const silent = stall(started, [json, 'Content-Length: 1000'], '{');
    const slow = stall(started, [json, 'Content-Length: 100000'], '{');
    const drip = setInterval(() => slow.socket.write(' '), 20);
    onTestFinished(() => clearInterval(drip));
    await until('both were told', () => [silent, slow].every(({ received }) => received().includes('upload_timeout')));
  });
});

describe('the bytes that are being received', () => {
  it('are shared among senders: one that stalls many uploads is refused, and others are not', async () => {
    const auth = { keys: ['a', 'b'].map((tenant) => ({ key: `sk-${tenant}`, tenant })) };
    const limits = { maxRequestBytes: 20_000, maxReadingBytes: 80_000 };
    const started = await startGateway(fileOf([(await startUpstream()).url], { auth, limits }, 100));
    const stalled = Array.from({ length: 8 }, () =>
      stall(started, ['Authorization: Bearer sk-a', json, 'Content-Length: 15000'], `{"x":"${'x'.repeat(9_000)}`),
    );
    await until(
      'some were refused',
      () => stalled.filter(({ received }) => received().includes('gateway_busy')).length >= 6,
    );
    expect((await started.post(chat, { headers: { authorization: 'Bearer sk-b' } })).status).toBe(200);
  });

  it('are not received from strangers who want to move thresholds', async () => {
    const started = await startGateway(
      fileOf([(await startUpstream()).url], {
        admin: { token: 'sk-admin' },
        plugins: [{ type: 'busy-threshold-detector', parameters: { activeDecodeBlocksThreshold: 0.9 } }],
        flowControl: { saturationDetector: { pluginRef: 'busy-threshold-detector' } },
      }),
    );
    const stranger = stall(started, [json, 'Content-Length: 10000000'], '{', '/busy_threshold');
    await until('it was told', () => stranger.received().includes('403'));
    const operator = stall(
      started,
      ['Authorization: Bearer sk-admin', json, 'Content-Length: 70000'],
      '{',
      '/busy_threshold',
    );
    await until('it was told', () => operator.received().includes('413'));
  });
});

describe('a large body', () => {
  /** Much to parse: a parsed message takes some 20 times its text. */
  const body = Buffer.from(
    JSON.stringify({ model: 'llama', messages: Array.from({ length: 40_000 }, () => ({ a: 1, b: '' })) }),
  );
  const requests = 20;

  /** Buffers that are garbage go in the background: some are counted until the next collection. */
  async function memory(): Promise<{ heap: number; buffers: number }> {
    for (let i = 0; i < 3; i++) {
      collectGarbage();
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return { heap: heapUsed, buffers: arrayBuffers };
  }

  function sendAll(started: Started): Socket[] {
    return Array.from({ length: requests }, () => {
      const socket = connect(portOf(started));
      onTestFinished(() => void socket.destroy());
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n${json}\r\nContent-Length: ${body.length}\r\n\r\n`,
      );
      socket.write(body);
      return socket;
    });
  }

  it('holds what the limits count while it waits, and little else', async () => {
    const started = await startGateway(fileOf([(await startUpstream(() => {})).url]));
    void started.post(chat).catch(() => {});
    await until('the seat is taken', () => started.gateway.flow.stats().inFlight === 1);
    const before = await memory();
    sendAll(started);
    await until('all wait', () => started.gateway.flow.stats().waiting === requests);
    const after = await memory();
    expect(started.gateway.flow.stats().waitingBytes).toBe(requests * body.length);
    expect((after.buffers - before.buffers) / (requests * body.length)).toBeLessThan(1.3);
    expect((after.heap - before.heap) / requests).toBeLessThan(100_000);
  });

  it('is gone once its answer has begun', async () => {
    const upstream = await startUpstream(
      ({ res }) => void res.writeHead(200, { 'content-type': 'text/event-stream' }).write(': \n\n'),
    );
    const started = await startGateway(fileOf([upstream.url], {}, requests));
    const before = await memory();
    const sockets = sendAll(started);
    let begun = 0;
    for (const socket of sockets) socket.once('data', () => (begun += 1));
    await until('all have begun', () => begun === requests);
    upstream.received.length = 0;
    expect(((await memory()).buffers - before.buffers) / (requests * body.length)).toBeLessThan(0.2);
  });
});

describe('a request that makes servers refuse', () => {
  const refuseAll = () => startUpstream(({ res }) => res.writeHead(503).end('{"error":"this prompt"}'));

  it('takes no server away from others', async () => {
    const [a, b, c] = [await refuseAll(), await refuseAll(), await startUpstream()];
    const { post, gateway } = await startGateway(fileOf([a.url, b.url, c.url]));
    expect((await post(chat)).status).toBe(503);
    expect([a, b, c].map(({ received }) => received.length)).toEqual([1, 1, 0]);
    expect(gateway.pool.endpoints.filter(({ overloadedUntilMs }) => overloadedUntilMs > gateway.pool.now())).toEqual(
      [],
    );
  });

  it.each([
    ['the third time', 3, {}, 'busy'],
    ['at once when the server says when to come back', 1, { 'retry-after': '1' }, 'busy'],
    ['at once when the server says that it is overloaded', 1, {}, '{"message":"Server overloaded: full"}'],
  ])('has the server avoided %s', async (_when, requests, headers, answer) => {
    const full = await startUpstream(({ res }) => res.writeHead(503, headers).end(answer));
    const { post, gateway } = await startGateway(fileOf([full.url, (await startUpstream()).url], {}, 10));
    while (full.received.length < requests) {
      expect(gateway.pool.get('u0')?.overloadedUntilMs).toBe(0);
      expect((await post(chat)).status).toBe(200);
    }
    expect(gateway.pool.get('u0')?.overloadedUntilMs).toBeGreaterThan(gateway.pool.now());
  });

  it('has a server with a spent quota avoided for as long as it says', async () => {
    const headers = { 'retry-after-ms': '120000', 'retry-after': '120' };
    const spent = await startUpstream(({ res }) =>
      res.writeHead(429, headers).end('{"error":{"message":"Rate limit reached"}}'),
    );
    const other = await startUpstream();
    const { post, gateway } = await startGateway(fileOf([spent.url, other.url], {}, 10));
    while (spent.received.length === 0) expect((await post(chat)).status).toBe(200);
    const leftMs = (gateway.pool.get('u0')?.overloadedUntilMs ?? 0) - gateway.pool.now();
    expect(leftMs).toBeGreaterThan(60_000);
    expect(leftMs).toBeLessThanOrEqual(120_000);
  });

  const startFull = () => startUpstream(({ res }) => res.writeHead(503).end('{"message":"Server overloaded: full"}'));
  const marked = ({ pool }: Gateway) =>
    pool.endpoints.filter(({ overloadedUntilMs }) => overloadedUntilMs > pool.now()).map(({ id }) => id);

  it('has the first server avoided that refuses it, and not the second: that may be the fault of the request', async () => {
    const servers = [await startFull(), await startFull(), await startUpstream()];
    const { post, gateway } = await startGateway(fileOf(servers.map(({ url }) => url)));
    const avoided: string[] = [];
    onTestFinished(gateway.pool.on('overloaded', ({ id }) => avoided.push(id)));
    expect((await post(chat)).status).toBe(503);
    expect(servers.map(({ received }) => received.length)).toEqual([1, 1, 0]);
    expect(avoided).toEqual(['u0']);
  });

  it('never takes the last server', async () => {
    const { post, gateway } = await startGateway(fileOf([(await startFull()).url, (await startFull()).url]));
    const atOnce: number[] = [];
    onTestFinished(gateway.pool.on('overloaded', () => atOnce.push(marked(gateway).length)));
    for (let i = 0; i < 5; i++) expect((await post(chat)).status).toBe(503);
    expect(new Set(atOnce)).toEqual(new Set([1]));
  });
});

describe('what is asked often', () => {
  it('is asked of the servers once: the list of models', async () => {
    const upstream = await startUpstream();
    let asked = 0;
    upstream.server.on('request', ({ url }) => {
      if (url === '/v1/models') asked += 1;
    });
    const { gateway } = await startGateway(fileOf([upstream.url]));
    const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(`${gateway.url}/v1/models`)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect((await fetch(`${gateway.url}/v1/models/llama`)).status).toBe(200);
    expect(asked).toBe(1);
  });
});

describe('what ends no process', () => {
  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('the disk is full');
      },
    ],
    ['is async and fails', () => Promise.reject(new Error('the disk is full'))],
  ])('is a log of the host that %s', async (_how, fail) => {
    const upstream = await startUpstream();
    const gateway = await createGateway(loadGatewayConfig(fileOf([upstream.url])), { log: fail as never });
    onTestFinished(() => gateway.close().then(() => {}));
    const ask = () =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(chat),
      });
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
    await gateway.close();
  });

  it('is a server whose list of models has no end: it counts as one that does not answer', async () => {
    const endless = await startUpstream();
    let sent = 0;
    endless.server.removeAllListeners('request');
    endless.server.on('request', (_req, res) => {
      res.write('{"data":[');
      const more = (): void => {
        if (res.destroyed || sent > 2 ** 26) return;
        sent += 2 ** 16;
        res.write('1,'.repeat(2 ** 15), () => setImmediate(more));
      };
      more();
    });
    const { gateway } = await startGateway(fileOf([endless.url, (await startUpstream()).url]));
    expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(200);
    expect(sent).toBeLessThan(2 ** 24);
  });
});

describe('what is no right request', () => {
  it.each([
    ['/v1/../admin'],
    ['/v1/%2e%2e/admin'],
    ['/v1/.%2E/admin'],
    ['/v1/a%2fb'],
    ['/v1/a%5Cb'],
    ['/v1/a\\b'],
    ['/v1/a%00'],
    ['/v1/.'],
    ['/v1/..;/admin'],
    ['/v1/..;a=b'],
    ['/v1/%2e.%3B/admin'],
    ['/v1/%252e%252e/admin'],
    ['/v1/a%25252fb'],
    ['/v1/a#../admin'],
    ['/v1/a%0d%0ab'],
    ['/v1/a%7F'],
  ])('is told 400 and reaches no server: %s', async (path) => {
    const upstream = await startUpstream();
    const started = await startGateway(fileOf([upstream.url]));
    const client = stall(started, [json, 'Content-Length: 2'], '{}', path);
    await until('it was told', () => client.received().includes('HTTP/1.1'));
    expect(client.received()).toMatch(/^HTTP\/1\.1 400 [\s\S]*invalid_path/);
    expect(upstream.received).toEqual([]);
  });

  it.each([
    ['//v1/chat/completions'],
    ['/V1/chat/completions'],
    ['/%761/chat/completions'],
    ['/v1;a=b/chat/completions'],
    ['http://x/v1/chat/completions'],
    ['*'],
  ])('is told 404 and reaches no server: %s', async (path) => {
    const upstream = await startUpstream();
    const started = await startGateway(fileOf([upstream.url]));
    const client = stall(started, [audio, 'Content-Length: 2'], '{}', path);
    await until('it was told', () => client.received().includes('HTTP/1.1'));
    expect(client.received()).toMatch(/^HTTP\/1\.1 404 /);
    expect(upstream.received).toEqual([]);
  });

  it.each([['/v1/a..b'], ['/v1/...'], ['/v1/a;b'], ['/v1/caf%C3%A9%20%2E%2E%2E?a=/../%00#'], ['/v1/.hidden']])(
    'is a right one: %s',
    async (path) => {
      const upstream = await startUpstream();
      const started = await startGateway(fileOf([upstream.url]));
      stall(started, [json, 'Content-Length: 2'], '{}', path);
      await until('it came', () => upstream.received.length === 1);
      expect(upstream.received[0]!.req.url).toBe(path);
    },
  );

  it('has more headers than are read, and is told so rather than served without the last of them', async () => {
    const upstream = await startUpstream();
    const started = await startGateway(fileOf([upstream.url]));
    const many = (count: number) => Array.from({ length: count }, (_, index) => `x-${index}: 1`);
    const told = stall(started, [...many(200), json, 'Content-Length: 2'], '{}');
    await until('it was told', () => told.received().includes('HTTP/1.1'));
    expect(told.received()).toMatch(/^HTTP\/1\.1 431 [\s\S]*too_many_headers/);
    stall(started, [...many(190), json, 'Content-Length: 2'], '{}');
    await until('it came', () => upstream.received.length === 1);
  });

  it.each([
    ['a fraction of a token', '{"max_tokens":0.5}'],
    ['nested without end', `{"messages":${'['.repeat(50_000)}${']'.repeat(50_000)}}`],
  ])('is told 400, and is no fault of the gateway: %s', async (_what, text) => {
    const { post, log } = await startGateway(fileOf([(await startUpstream()).url]));
    expect((await post(text)).status).toBe(400);
    expect(log.some(({ event }) => event === 'internal')).toBe(false);
  });

  it('is a name of a model that cannot be decoded', async () => {
    const { gateway } = await startGateway(fileOf([(await startUpstream()).url]));
    expect(await errorOf(await fetch(`${gateway.url}/v1/models/%E0%A4%A`))).toMatchObject({
      status: 400,
      code: 'invalid_path',
    });
  });
});

describe('headers', () => {
  it('for gateways alone end here in every spelling, and those of one connection however they are listed', async () => {
    const upstream = await startUpstream();
    const started = await startGateway(fileOf([upstream.url]));
    const body = JSON.stringify(chat);
    stall(
      started,
      [
        json,
        `Content-Length: ${body.length}`,
        'x_llm_d_inference_fairness_id: a',
        'x-llm-d-not-known-yet: b',
        'x_gateway_inference_objective: c',
        'Connection: keep-alive\t,\tx-hop\t x-hop-two',
        'x-hop: 1',
        'x-hop-two: 2',
        'x-mine: 3',
      ],
      body,
    );
    await until('it came', () => upstream.received.length === 1);
    const names = Object.keys(upstream.received[0]!.req.headers);
    expect(names.filter((name) => /^x[-_](llm|gateway|hop)/.test(name))).toEqual([]);
    expect(names).toContain('x-mine');
  });

  it.each([
    ['set', { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http', 'x-real-ip': undefined }],
    ['pass', { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-proto': undefined, 'x-real-ip': '6.6.6.6' }],
  ])('that tell of the client are %s, as configured', async (forwarded, expected) => {
    const upstream = await startUpstream();
    const { post } = await startGateway(fileOf([upstream.url], { forwarded }));
    await post(chat, { headers: { 'x-forwarded-for': '6.6.6.6', 'x-real-ip': '6.6.6.6' } });
    const { headers } = upstream.received[0]!.req;
    expect(Object.fromEntries(Object.keys(expected).map((name) => [name, headers[name]]))).toEqual(expected);
  });
});

describe('metrics', () => {
  it.each([
    ['where keys are configured', { auth: { keys: [{ key: 'sk-a', tenant: 'a' }] } }],
    ['on an address that strangers reach', { listen: { host: '0.0.0.0', port: 0 } }],
  ])('are not for clients: %s', async (_where, more) => {
    const open = await startGateway(fileOf([(await startUpstream()).url], more));
    const get = ({ gateway }: Started, headers = {}) =>
      fetch(`http://127.0.0.1:${new URL(gateway.adminUrl).port}/metrics`, { headers });
    expect((await get(open)).status).toBe(401);
    expect(open.log.map(({ event }) => event)).toContain('metrics-closed');
    const guarded = await startGateway(
      fileOf([(await startUpstream()).url], { ...more, admin: { token: 'sk-admin' } }),
    );
    expect((await get(guarded)).status).toBe(401);
    expect((await get(guarded, { authorization: 'Bearer sk-admin' })).status).toBe(200);
    expect(guarded.log.map(({ event }) => event)).not.toContain('metrics-closed');
    expect(
      (await get(await startGateway(fileOf([(await startUpstream()).url], { ...more, admin: { port: 0 } })))).status,
    ).toBe(200);
  });
});

describe('an answer that cannot be repeated', () => {
  it.each([
    [
      'a byte in a header',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\nx-odd: a\u0001b\r\n\r\nhello',
    ],
    ['a byte beyond ASCII in a header', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx-odd: \u20ac\r\n\r\nhello'],
    ['a status line', 'HTTP/1.1 200 \u0001\u20ac\r\nContent-Length: 5\r\n\r\nhello'],
    ['a status that is none', 'HTTP/1.1 099 Odd\r\nContent-Length: 5\r\n\r\nhello'],
  ])('for %s is followed by the next one', async (_why, answer) => {
    const upstream = await startUpstream((received, index) => {
      if (index === 0) received.res.socket!.end(answer);
      else serve(received, index);
    });
    const { post, gateway } = await startGateway(fileOf([upstream.url]));
    const odd = await post(chat);
    expect([200, 502]).toContain(odd.status);
    await odd.text();
    await until('the seat is free', () => gateway.flow.stats().inFlight === 0);
    expect((await post(chat)).status).toBe(200);
  });
});

describe('an answer that breaks off before its first byte', () => {
  it.each([
    ['its length is wrong', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello'],
    ['its body is no body', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    ['its connection ends', 'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n'],
  ])('is told as an error, and not by a connection that ends: %s', async (_why, answer) => {
    const upstream = await startUpstream(({ res }) => void res.socket!.end(answer));
    const { post, gateway } = await startGateway(fileOf([upstream.url], { retry: { enabled: false } }));
    expect(await errorOf(await post(chat))).toMatchObject({ status: 502, code: 'upstream_failed' });
    expect(gateway.flow.stats().inFlight).toBe(0);
  });
});

describe('a listener that the public reaches', () => {
  it('has the limits that Node leaves open, and that of operators has them too', async () => {
    const servers = new Map<number, Server>();
    const note = (message: unknown): void => {
      const { server } = message as { server: Server };
      servers.set((server.address() as AddressInfo).port, server);
    };
    subscribe('http.server.request.start', note);
    onTestFinished(() => void unsubscribe('http.server.request.start', note));
    const { gateway } = await startGateway(
      fileOf([(await startUpstream()).url], { admin: { port: 0 }, limits: { maxConnections: 7 } }),
    );
    for (const url of [`${gateway.url}/v1/models`, `${gateway.adminUrl}/healthz`]) {
      await fetch(url);
      const limits = { maxConnections: 7, headersTimeout: 15_000, maxHeadersCount: 200, keepAliveTimeout: 75_000 };
      expect(servers.get(Number(new URL(url).port))).toMatchObject(limits);
    }
  });
});

describe('closing', () => {
  it('resolves when nothing is in flight', async () => {
    const upstream = await startUpstream(({ res }) => void res.writeHead(200).write('begun'));
    const started = await startGateway(fileOf([upstream.url], { drain: { waiting: '10ms', streams: '10ms' } }, 20));
    const clients = Array.from({ length: 20 }, () => stall(started, [json, 'Content-Length: 2'], '{}'));
    await until('all have begun', () => clients.every(({ received }) => received().includes('begun')));
    expect((await started.gateway.close()).inFlight).toBe(0);
    expect(started.gateway.flow.stats().inFlight).toBe(0);
  });
});
