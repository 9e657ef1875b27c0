/** The gateway as a proxy, over real sockets; the model servers are in the hands of the tests. */
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { AdaptiveDetector } from '../../src/types/index.js';
import { rawConnection } from '../integration/support/clients.js';
import { deferred, until } from '../integration/support/until.js';
import { errorOf, fileOf, startGateway } from './support/gateway.js';
import { serve, sse, startUpstream } from './support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };

describe('what passes', () => {
  it('is the answer of the server, with the time in the queue and the id of the request', async () => {
    const upstream = await startUpstream();
    const { post, log } = await startGateway(fileOf([upstream.url]));
    const response = await post(chat, { headers: { 'x-request-id': 'mine-1' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-request-id')).toBe('mine-1');
    expect(response.headers.get('x-llm-d-flow-queue-duration-ms')).toBe('0');
    expect(((await response.json()) as { choices: object[] }).choices).toHaveLength(1);
    expect(upstream.received[0]?.req.headers['x-request-id']).toBe('mine-1');
    await until('the request is logged', () => log.some(({ event }) => event === 'request'));
    expect(log.find(({ event }) => event === 'request')?.fields).toMatchObject({
      status: 200,
      endpoint: 'u0',
      promptTokens: 3,
      completionTokens: 2,
    });
  });

  it('is made an id when the request has none that can be logged', async () => {
    const upstream = await startUpstream();
    const { post } = await startGateway(fileOf([upstream.url]));
    const response = await post(chat, { headers: { 'x-request-id': 'a b' } });
    await response.text();
    expect(response.headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/);
  });

  it('keeps trace headers, and loses flow headers and those of one connection', async () => {
    const upstream = await startUpstream();
    const { gateway } = await startGateway(fileOf([upstream.url]));
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await new Promise<void>((resolve) => {
      const outgoing = request(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          traceparent,
          tracestate: 'a=b',
          connection: 'keep-alive, x-private',
          'x-private': '1',
          'x-gateway-inference-fairness-id': 'forged',
          'x-llm-d-inference-objective': 'forged',
        },
      });
      outgoing.on('response', (res) => res.resume().on('end', resolve)).end(JSON.stringify(chat));
    });
    const { headers } = upstream.received[0]!.req;
    expect(headers).toMatchObject({ traceparent, tracestate: 'a=b' });
    expect(Object.keys(headers).filter((name) => /^x-(gateway|llm-d|private)/.test(name))).toEqual([]);
  });

  it('is streamed piece by piece', async () => {
    const goOn = deferred();
    const upstream = await startUpstream(({ res }) => {
      res.setHeader('content-type', 'text/event-stream').write(sse('first'));
      void goOn.promise.then(() => res.end('data: [DONE]\n\n'));
    });
    const { post } = await startGateway(fileOf([upstream.url]));
    const reader = (await post({ ...chat, stream: true })).body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('first');
    goOn.resolve();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('[DONE]');
  });

  it('is held back when the client does not read', async () => {
    let written = 0;
    const upstream = await startUpstream(({ res }) => {
      const piece = Buffer.alloc(65_536);
      const fill = (): void => {
        written += piece.length;
        if (written > 200 * 2 ** 20) res.end(piece);
        else res.write(piece, fill);
      };
      fill();
    });
    const { gateway } = await startGateway(fileOf([upstream.url]));
    const outgoing = request(`${gateway.url}/v1/x`, { method: 'POST' });
    outgoing.on('error', () => {});
    const paused = new Promise<void>((resolve) => outgoing.on('response', (res) => resolve(void res.pause())));
    outgoing.end();
    await paused;
    let lastAtMs = performance.now();
    let before = 0;
    await until('nothing is written for a while', () => {
      if (before !== written) lastAtMs = performance.now();
      before = written;
      return written > 0 && performance.now() - lastAtMs > 200;
    });
    expect(written).toBeLessThan(50 * 2 ** 20);
    outgoing.destroy();
  });

  it('is broken off when the client takes nothing for longer than the idle time', async () => {
    const broken = deferred<void>();
    const upstream = await startUpstream(({ res }) => {
      const piece = Buffer.alloc(65_536);
      const fill = (): void => void (res.destroyed || res.write(piece, fill));
      res.once('close', broken.resolve);
      fill();
    });
    const { gateway } = await startGateway(fileOf([upstream.url], { timeouts: { idle: '200ms' } }));
    const outgoing = request(`${gateway.url}/v1/x`, { method: 'POST' });
    outgoing.on('error', () => {}).on('response', (res) => void res.on('error', () => {}).pause());
    outgoing.end();
    await broken.promise;
    await until('its seat is free', () => gateway.flow.stats().inFlight === 0);
    outgoing.destroy();
  });

  it('is an upload that is no JSON', async () => {
    const upstream = await startUpstream(({ res, body }) => res.end(String(body.length)));
    const { gateway } = await startGateway(fileOf([upstream.url]));
    const body = new ReadableStream({
      start(controller) {
        for (let index = 0; index < 10; index++) controller.enqueue(new Uint8Array(100_000).fill(65));
        controller.close();
      },
    });
    const init = { method: 'POST', body, duplex: 'half', headers: { 'content-type': 'audio/wav' } } as RequestInit;
    const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, init);
    expect(await response.text()).toBe('1000000');
  });
});

describe('what is refused', () => {
  it.each([
    ['a path that is none', 'GET', '/else', 404, 'not_found'],
    ['a method that is none', 'DELETE', '/v1/files/1', 405, 'method_not_allowed'],
  ])('%s', async (_name, method, path, status, code) => {
    const { gateway } = await startGateway(fileOf([(await startUpstream()).url]));
    expect(await errorOf(await fetch(gateway.url + path, { method }))).toMatchObject({
      status,
      code,
      type: 'invalid_request_error',
    });
  });

  it('is a body that is too large, by its announcement or by its length', async () => {
    const upstream = await startUpstream();
    const { post, gateway } = await startGateway(fileOf([upstream.url], { limits: { maxRequestBytes: 1000 } }));
    expect(await errorOf(await post(`"${'a'.repeat(2000)}"`))).toMatchObject({
      status: 413,
      code: 'request_too_large',
    });
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(3000)) });
    const init = {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { 'content-type': 'application/json' },
    } as RequestInit;
    expect(await errorOf(await fetch(`${gateway.url}/v1/x`, init))).toMatchObject({ status: 413 });
    expect(upstream.received).toEqual([]);
    expect(gateway.flow.stats().inFlight).toBe(0);
  });

  it('is an upload that turns out too large on its way', async () => {
    const upstream = await startUpstream();
    const { gateway } = await startGateway(fileOf([upstream.url], { limits: { maxRequestBytes: 1000 } }));
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(3000)) });
    const init = { method: 'POST', body, duplex: 'half', headers: { 'content-type': 'audio/wav' } } as RequestInit;
    expect(await errorOf(await fetch(`${gateway.url}/v1/x`, init))).toMatchObject({
      status: 413,
      code: 'request_too_large',
    });
    await until('the seat is free', () => gateway.flow.stats().inFlight === 0);
    expect(upstream.received).toEqual([]);
  });

  it('is JSON that is none, without taking a seat', async () => {
    const { post, gateway } = await startGateway(fileOf([(await startUpstream()).url]));
    expect(await errorOf(await post('{'))).toMatchObject({ status: 400, code: 'invalid_json' });
    expect(gateway.flow.stats().enqueued).toBe(0);
  });

  it.each([
    ['told when the file asks for it', { bandHeadroom: true }, ['3', '2']],
    ['not told otherwise', {}, [null, null]],
  ])('comes with the room left in the band, which is %s', async (_, asked, expected) => {
    const upstream = await startUpstream((call, nth) => nth === 0 && serve(call, nth));
    const bands = { defaultPriorityBand: { maxRequests: 3 } };
    const flowControl = { saturationDetector: { pluginRef: 'concurrency-detector' }, maxRequests: 1, ...bands };
    const { post, gateway } = await startGateway(fileOf([upstream.url], { flowControl, ...asked }));
    const served = await post(chat);
    await served.text();
    const left = new AbortController();
    const waiting = [post(chat, { signal: left.signal }), post(chat, { signal: left.signal })].map((promise) =>
      promise.catch(() => {}),
    );
    await until('one runs and one waits', () => gateway.flow.stats().waiting === 1);
    const dropped = await post(chat);
    expect([served.status, dropped.status]).toEqual([200, 429]);
    expect([served, dropped].map(({ headers }) => headers.get('x-llm-d-flow-band-headroom-requests'))).toEqual(
      expected,
    );
    left.abort();
    await Promise.all(waiting);
  });

  it('is what finds the queue full, by the contract, with Retry-After', async () => {
    const upstream = await startUpstream(() => {});
    const limits = { flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, maxRequests: 1 } };
    const { post, gateway } = await startGateway(fileOf([upstream.url], limits));
    const left = new AbortController();
    const waiting = [post(chat, { signal: left.signal }), post(chat, { signal: left.signal })].map((promise) =>
      promise.catch(() => {}),
    );
    await until('one runs and one waits', () => gateway.flow.stats().waiting === 1);
    const response = await post(chat);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(response.headers.get('x-llm-d-request-dropped-reason')).toBe('rejected-saturated');
    expect(await errorOf(response)).toMatchObject({
      status: 429,
      type: 'rate_limit_error',
      code: 'ERR_FLOW_SATURATED',
    });
    left.abort();
    await Promise.all(waiting);
  });
});

describe('keys', () => {
  const auth = {
    objectives: { gold: 10 },
    auth: {
      keys: [
        { key: 'sk-acme', tenant: 'acme', objective: 'gold' },
        { key: 'sk-proxy', tenant: 'proxy', trusted: true },
      ],
    },
  };

  it('name the tenant and its priority, whatever the headers say, and stay at the gateway', async () => {
    const upstream = await startUpstream();
    const { post, log } = await startGateway(fileOf([upstream.url], auth));
    const headers = { authorization: 'Bearer sk-acme', 'x-gateway-inference-fairness-id': 'forged' };
    await (await post(chat, { headers })).text();
    await until('the request is logged', () => log.some(({ event }) => event === 'request'));
    expect(log.find(({ event }) => event === 'request')?.fields).toMatchObject({ tenant: 'acme', priority: 10 });
    expect(upstream.received[0]?.req.headers.authorization).toBeUndefined();
    expect(JSON.stringify(log)).not.toContain('sk-acme');
    expect(JSON.stringify(log)).not.toContain('hello');
  });

  it('that are trusted believe the headers', async () => {
    const { post, gateway } = await startGateway(fileOf([(await startUpstream()).url], auth));
    const seen: string[] = [];
    gateway.flow.on('dispatched', ({ lease }) => seen.push(`${lease.fairnessId} ${lease.priority}`));
    const headers = {
      'x-api-key': 'sk-proxy',
      'x-gateway-inference-fairness-id': 'theirs',
      'x-gateway-inference-objective': 'gold',
    };
    await (await post(chat, { headers })).text();
    expect(seen).toEqual(['theirs 10']);
  });

  it('that are unknown are refused, or anonymous where that is allowed', async () => {
    const upstream = await startUpstream();
    const strict = await startGateway(fileOf([upstream.url], auth));
    const wrong = { headers: { authorization: 'Bearer sk-other' } };
    expect(await errorOf(await strict.post(chat, wrong))).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
      type: 'authentication_error',
    });
    expect((await strict.post(chat)).status).toBe(401);
    const open = await startGateway(
      fileOf([upstream.url], { ...auth, auth: { ...auth.auth, anonymous: { tenant: 'guest', priority: -5 } } }),
    );
    const seen: string[] = [];
    open.gateway.flow.on('dispatched', ({ lease }) => seen.push(`${lease.fairnessId} ${lease.priority}`));
    expect((await open.post(chat, wrong)).status).toBe(200);
    expect(seen).toEqual(['guest -5']);
  });

  it('of a server are sent to it', async () => {
    const upstream = await startUpstream();
    const { post } = await startGateway(fileOf([{ id: 'a', url: upstream.url, apiKey: 'sk-upstream' }]));
    await (await post(chat, { headers: { authorization: 'Bearer sk-client' } })).text();
    expect(upstream.received[0]?.req.headers.authorization).toBe('Bearer sk-upstream');
  });
});

describe('models', () => {
  it('lead to the servers that have them, and are renamed on the way', async () => {
    const [a, b] = [await startUpstream(), await startUpstream()];
    const upstreams = [
      { id: 'a', url: a.url, labels: { model: 'llama' } },
      { id: 'b', url: b.url, labels: { model: 'qwen, adapter' } },
    ];
    const { post } = await startGateway(fileOf(upstreams, { models: { aliases: { 'gpt-4o': 'qwen' } } }));
    for (const model of ['llama', 'adapter', 'gpt-4o', 'qwen'])
      expect((await post({ ...chat, model })).status).toBe(200);
    expect(a.received.map(({ body }) => JSON.parse(body).model)).toEqual(['llama']);
    expect(b.received.map(({ body }) => JSON.parse(body).model)).toEqual(['adapter', 'qwen', 'qwen']);
    expect(await errorOf(await post({ ...chat, model: 'gpt-5' }))).toMatchObject({
      status: 404,
      code: 'model_not_found',
    });
  });

  it('that are full do not hold back others', async () => {
    const [a, b] = [await startUpstream(() => {}), await startUpstream()];
    const upstreams = [
      { id: 'a', url: a.url, labels: { model: 'llama' } },
      { id: 'b', url: b.url, labels: { model: 'qwen' } },
    ];
    const { post, gateway } = await startGateway(fileOf(upstreams));
    const left = new AbortController();
    const held = [1, 2].map(() => post(chat, { signal: left.signal }).catch(() => {}));
    await until('one llama runs and one waits', () => gateway.flow.stats().waiting === 1);
    expect((await post({ ...chat, model: 'qwen' })).status).toBe(200);
    left.abort();
    await Promise.all(held);
  });

  it('are renamed by a trusted sender alone', async () => {
    const upstream = await startUpstream();
    const keys = [{ key: 'sk-proxy', tenant: 'proxy', trusted: true }];
    const { post } = await startGateway(fileOf([upstream.url], { auth: { keys, anonymous: { tenant: 'guest' } } }));
    const rewrite = { 'x-gateway-model-name-rewrite': 'other' };
    await (await post(chat, { headers: rewrite })).text();
    await (await post(chat, { headers: { ...rewrite, authorization: 'Bearer sk-proxy' } })).text();
    expect(upstream.received.map(({ body }) => JSON.parse(body).model)).toEqual(['llama', 'other']);
  });

  it('are listed, merged from the servers or as the file says', async () => {
    const [a, b] = [await startUpstream(), await startUpstream()];
    const list = async (file: object): Promise<unknown> => {
      const { gateway } = await startGateway(file);
      const { data } = (await (await fetch(`${gateway.url}/v1/models`)).json()) as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    expect(await list(fileOf([a.url, b.url], { models: { aliases: { mine: 'llama' } } }))).toEqual(['llama', 'mine']);
    expect(await list(fileOf([a.url], { models: { list: ['x', 'y'] } }))).toEqual(['x', 'y']);
  });
});

describe('when a server fails', () => {
  it('before its answer: 502 in a body that clients parse, and the seat is free', async () => {
    const upstream = await startUpstream(({ req }) => req.socket.destroy());
    const { post, gateway } = await startGateway(fileOf([upstream.url]));
    expect(await errorOf(await post(chat))).toMatchObject({
      status: 502,
      type: 'server_error',
      code: 'upstream_failed',
    });
    await until('the seat is free', () => gateway.flow.stats().inFlight === 0);
  });

  it('by silence: 504', async () => {
    const upstream = await startUpstream(() => {});
    const { post } = await startGateway(fileOf([upstream.url], { timeouts: { total: '100ms' } }));
    expect(await errorOf(await post(chat))).toMatchObject({ status: 504, code: 'upstream_timeout' });
  });

  it('within its answer: the stream breaks off', async () => {
    const upstream = await startUpstream(({ res }) => {
      res.setHeader('content-type', 'text/event-stream').write(sse('half'), () => res.destroy());
    });
    const { post, gateway } = await startGateway(fileOf([upstream.url]));
    const response = await post({ ...chat, stream: true });
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    await until('the seat is free', () => gateway.flow.stats().inFlight === 0);
  });

  it('by refusing for its load: another one is asked, and it gets nothing for a while', async () => {
    const full = await startUpstream(({ res }) =>
      res.writeHead(503).end('{"message":"Server overloaded: queue full"}'),
    );
    const free = await startUpstream();
    const { post, gateway, log } = await startGateway(fileOf([full.url, free.url], {}, 4));
    for (let index = 0; index < 4; index++) expect((await post(chat)).status).toBe(200);
    expect([full.received.length, free.received.length]).toEqual([1, 4]);
    expect(gateway.pool.get('u0')?.overloadedUntilMs).toBeGreaterThan(gateway.pool.now());
    await until('all are logged', () => log.filter(({ event }) => event === 'request').length === 4);
    expect(log.find(({ event }) => event === 'request')?.fields).toMatchObject({
      endpoint: 'u1',
      retries: 1,
      status: 200,
      code: undefined,
    });
    expect(gateway.flow.stats().inFlight).toBe(0);
  });

  it('by refusing twice: the refusal passes', async () => {
    const refuse = () => startUpstream(({ res }) => res.writeHead(529).end('{"error":"full"}'));
    const [a, b, c] = [await refuse(), await refuse(), await refuse()];
    const { post } = await startGateway(fileOf([a.url, b.url, c.url]));
    const response = await post(chat);
    expect([response.status, await response.text()]).toEqual([529, '{"error":"full"}']);
    expect([a, b, c].map(({ received }) => received.length)).toEqual([1, 1, 0]);
  });

  it('by refusing a request that is too large to be kept: the refusal passes', async () => {
    const full = await startUpstream(({ res }) => res.writeHead(503).end('busy'));
    const free = await startUpstream();
    const { post } = await startGateway(fileOf([full.url, free.url], { retry: { maxBodyBytes: 10 } }));
    expect((await post(chat)).status).toBe(503);
    expect(free.received).toEqual([]);
  });

  it('by refusing, when the client has left meanwhile: nobody else is asked, and no seat is lost', async () => {
    const left = new AbortController();
    const full = await startUpstream(({ res }) => {
      left.abort();
      void until('the gateway knows', () => res.destroyed || log.length > 0).then(
        () => res.destroyed || res.writeHead(503).end('busy'),
      );
    });
    const free = await startUpstream();
    const { post, gateway, log } = await startGateway(fileOf([full.url, free.url]));
    await expect(post(chat, { signal: left.signal })).rejects.toThrow();
    await until('it is over', () => log.some(({ event }) => event === 'request'));
    expect([free.received.length, gateway.flow.stats().inFlight]).toEqual([0, 0]);
  });

  it('by not being there: another one is asked', async () => {
    const gone = await startUpstream();
    await new Promise((resolve) => gone.server.close(resolve));
    const { post } = await startGateway(fileOf([gone.url, (await startUpstream()).url]));
    for (let index = 0; index < 3; index++) expect((await post(chat)).status).toBe(200);
  });

  it('with an error of its own: the error passes as it is', async () => {
    const body = JSON.stringify({ error: { message: 'no such thing', type: 'x', code: 'y' } });
    const upstream = await startUpstream(({ res }) =>
      res.writeHead(400, { 'content-type': 'application/json' }).end(body),
    );
    const { post } = await startGateway(fileOf([upstream.url]));
    const response = await post(chat);
    expect([response.status, await response.text()]).toEqual([400, body]);
  });

  it('with a long error, whole', async () => {
    const body = 'x'.repeat(500_000);
    const upstream = await startUpstream(({ res }) => res.writeHead(500).end(body));
    const { post } = await startGateway(fileOf([upstream.url]));
    expect((await (await post(chat)).text()).length).toBe(500_000);
  });
});

describe('a request that is evicted', () => {
  const file = (url: string): object =>
    fileOf([url], {
      auth: {
        keys: [{ key: 'sk-premium', tenant: 'premium', priority: 100 }],
        anonymous: { tenant: 'batch', priority: -10 },
      },
      flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, enableEviction: true },
    });
  const premium = { headers: { authorization: 'Bearer sk-premium' } };

  it('before its first byte is told 429, the server hears of it, and the other one is served', async () => {
    const isGone = deferred();
    const upstream = await startUpstream((received, index) => {
      if (index === 0) received.res.once('close', () => isGone.resolve());
      else serve(received, index);
    });
    const { post, gateway } = await startGateway(file(upstream.url));
    const batch = post(chat);
    await until('it runs', () => upstream.received.length === 1);
    expect((await post(chat, premium)).status).toBe(200);
    expect(await errorOf(await batch)).toMatchObject({ status: 429, code: 'ERR_FLOW_EVICTED' });
    await isGone.promise;
    await until('all seats are free', () => gateway.flow.stats().inFlight === 0);
  });

  it('within its answer breaks off', async () => {
    const upstream = await startUpstream((received, index) => {
      if (index === 0) received.res.setHeader('content-type', 'text/event-stream').write(sse('half'));
      else serve(received, index);
    });
    const { post } = await startGateway(file(upstream.url));
    const batch = await post({ ...chat, stream: true });
    expect((await post(chat, premium)).status).toBe(200);
    await expect(batch.text()).rejects.toThrow();
  });
});

describe('when a client leaves', () => {
  it('while its answer streams: the server hears of it, and the seat is free', async () => {
    const isGone = deferred();
    const upstream = await startUpstream(({ res }) => {
      res.setHeader('content-type', 'text/event-stream').write(sse('first'));
      res.once('close', () => isGone.resolve());
    });
    const { post, gateway } = await startGateway(fileOf([upstream.url]));
    const left = new AbortController();
    const response = await post({ ...chat, stream: true }, { signal: left.signal });
    await response.body!.getReader().read();
    left.abort();
    await isGone.promise;
    await until('the seat is free', () => gateway.flow.stats().inFlight === 0);
  });

  it('while it waits: it leaves the queue, and no server hears of it', async () => {
    const upstream = await startUpstream(() => {});
    const { post, gateway } = await startGateway(fileOf([upstream.url]));
    const [first, second] = [new AbortController(), new AbortController()];
    const held = [first, second].map(({ signal }) => post(chat, { signal }).catch(() => {}));
    await until('one runs and one waits', () => gateway.flow.stats().waiting === 1);
    second.abort();
    await until('nobody waits', () => gateway.flow.stats().waiting === 0);
    first.abort();
    await Promise.all(held);
    expect(upstream.received).toHaveLength(1);
  });
});

describe('a client that asks for permission to upload JSON', () => {
  it('gets it at once, and its seat when the body is there', async () => {
    const { gateway } = await startGateway(fileOf([(await startUpstream()).url]));
    const body = JSON.stringify(chat);
    const client = rawConnection(Number(new URL(gateway.url).port));
    client.socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
    );
    await until('it may go on', () => client.received().includes('100 Continue'));
    expect(gateway.flow.stats().enqueued).toBe(0);
    client.socket.write(body);
    await until('it is answered', () => client.received().includes('served'));
    expect(client.received().split('100 Continue')).toHaveLength(2);
    client.socket.destroy();
  });
});

describe('operators', () => {
  it('are told that it is alive, ready, and how it does', async () => {
    const { gateway, post } = await startGateway(fileOf([(await startUpstream()).url]));
    await (await post(chat)).text();
    const get = (path: string): Promise<Response> => fetch(gateway.adminUrl + path);
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(200);
    expect(await (await get('/metrics')).text()).toMatch(
      /flow_control_request_queue_duration_seconds_count\{.*outcome="Dispatched".*\} 1/,
    );
    const empty = await startGateway(fileOf([]));
    expect((await fetch(`${empty.gateway.url}/readyz`)).status).toBe(503);
  });

  it('have a port of their own where they ask for it', async () => {
    const { gateway } = await startGateway(fileOf([(await startUpstream()).url], { admin: { port: 0 } }));
    expect((await fetch(`${gateway.adminUrl}/healthz`)).status).toBe(200);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(404);
    expect((await fetch(`${gateway.adminUrl}/v1/models`)).status).toBe(404);
  });

  it('move busy thresholds with the token, and not without', async () => {
    const file = fileOf([(await startUpstream()).url], {
      admin: { token: 'sk-admin' },
      plugins: [{ type: 'busy-threshold-detector', parameters: { activeDecodeBlocksThreshold: 0.9 } }],
      flowControl: { saturationDetector: { pluginRef: 'busy-threshold-detector' } },
    });
    const { gateway } = await startGateway(file);
    const move = (token: string): Promise<Response> =>
      fetch(`${gateway.url}/busy_threshold`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'default', active_decode_blocks_threshold: 0.5 }),
      });
    expect((await move('sk-other')).status).toBe(403);
    expect(await (await move('sk-admin')).json()).toMatchObject({ active_decode_blocks_threshold: 0.5 });
  });
});

describe('latency', () => {
  it('of the first token is told to detectors that go by it', async () => {
    const upstream = await startUpstream();
    const { post, config } = await startGateway(
      fileOf([upstream.url], {
        plugins: [
          {
            type: 'aimd-latency-detector',
            parameters: { initialLimit: 1, minSamples: 2, windowMs: 1, targetMs: 5000 },
          },
        ],
        flowControl: { saturationDetector: { pluginRef: 'aimd-latency-detector' } },
      }),
    );
    for (let index = 0; index < 5; index++) await (await post({ ...chat, stream: true })).text();
    const [detector] = config.detectors as AdaptiveDetector[];
    expect(detector?.limit).toBeGreaterThan(1);
    expect(upstream.received).toHaveLength(5);
  });
});
