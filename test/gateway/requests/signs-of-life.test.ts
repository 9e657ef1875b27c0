/**
 * Answers that begin while their requests wait, and every way in which they can end. The gateway's time stands still
 * but for what a test lets pass.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { explainWait } from '../../../src/index.js';
import { until } from '../../integration/support/until.js';
import { fileOf, type Started, startGateway } from '../support/gateway.js';
import { type Answer, serve, sse, startUpstream } from '../support/upstream.js';

const chat = { model: 'llama', stream: true, messages: [{ role: 'user', content: 'hello' }] };
const hang: Answer = () => {};
const whole = `${sse('ser')}${sse('ved')}data: [DONE]\n\n`;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** What came of an answer so far. */
function reading(response: Response): { text: string; readonly over: Promise<void> } {
  const read = { text: '', over: Promise.resolve() };
  read.over = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) read.text += decoder.decode(chunk);
  })();
  read.over.catch(() => {});
  return read;
}

const soon = { after: '10ms', every: '1h' };
const briefly = (more: object = {}) => ({
  waiting: soon,
  flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, defaultRequestTTL: '250ms' },
  ...more,
});

/** A gateway whose only seat is taken, and a request that waits: its answer has begun. */
async function waiting(more: object = {}, path = '/v1/chat/completions', answer: Answer = serve) {
  const server = await startUpstream((asked, count) => (count === 0 ? hang(asked, count) : answer(asked, count)));
  const started = await startGateway(fileOf([server.url], more));
  const holding = new AbortController();
  started.post({ ...chat, stream: false }, { signal: holding.signal }).catch(() => {});
  await until('the seat is taken', () => server.received.length === 1);
  const leaving = new AbortController();
  const answered = fetch(`${started.gateway.url}${path}`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(chat),
  });
  await until('the other waits', () => started.gateway.flow.stats().waiting === 1);
  if (vi.isFakeTimers()) vi.advanceTimersByTime(15_000);
  const response = await answered;
  const read = reading(response);
  await until('a sign came', () => read.text !== '');
  return { ...started, server, response, read, free: () => holding.abort(), leave: () => leaving.abort() };
}

async function metric({ gateway }: Pick<Started, 'gateway'>, what: string): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(new RegExp(`^headgate_waiting_answers_total\\{what="${what}"\\} (\\d+)`, 'm').exec(text)?.[1]);
}

describe('a stream that waits', () => {
  it('begins with 200 and a comment, and goes on as the server sends it', async () => {
    const { response, read, free, gateway } = await waiting();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    expect(response.headers.get('x-request-id')).toMatch(/./);
    vi.advanceTimersByTime(9_999);
    expect(read.text).toBe(': waiting\n\n');
    vi.advanceTimersByTime(1);
    await until('another sign', () => read.text === ': waiting\n\n: waiting\n\n');
    expect(explainWait(gateway.flow, () => true)?.text).toContain('its answer has begun');
    free();
    await read.over;
    expect(read.text).toBe(`: waiting\n\n: waiting\n\n${whole}`);
    expect([await metric({ gateway }, 'begun'), await metric({ gateway }, 'sign')]).toEqual([1, 2]);
    expect(await metric({ gateway }, 'failed')).toBe(0);
  });

  it('loses nothing of what comes to a client that reads one byte a minute', async () => {
    const server = await startUpstream((asked, count) => (count === 0 ? hang : serve)(asked, count));
    const { gateway, post } = await startGateway(fileOf([server.url]));
    const holding = new AbortController();
    post({ ...chat, stream: false }, { signal: holding.signal }).catch(() => {});
    await until('the seat is taken', () => server.received.length === 1);
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const asked = request(`${gateway.url}/v1/chat/completions`, init).end(JSON.stringify(chat));
    const answered = once(asked, 'response') as Promise<[IncomingMessage]>;
    await until('it waits', () => gateway.flow.stats().waiting === 1);
    vi.advanceTimersByTime(15_000);
    const [response] = await answered;
    let text = '';
    for (let minute = 0; minute < 30; minute++) {
      vi.advanceTimersByTime(60_000);
      await new Promise((resolve) => setImmediate(resolve));
      text += response.read(1) ?? '';
    }
    expect(text.length).toBeLessThanOrEqual(30);
    // One every ten seconds, as for everybody: its connection holds them.
    const signs = await metric({ gateway }, 'sign');
    expect(signs).toBe(1 + 30 * 6);
    holding.abort();
    for await (const chunk of response) text += chunk;
    expect(text).toBe(`${': waiting\n\n'.repeat(signs)}${whole}`);
    expect(gateway.flow.stats().inFlight).toBe(0);
  });

  it('is told its place where the file says so', async () => {
    const { read } = await waiting({ waiting: { position: true } });
    expect(read.text).toMatch(/^: waiting position=1(?: eta=\d+s)?\n\n$/);
  });

  it('hears the event that clients of Anthropic’s interface know', async () => {
    const { read } = await waiting({}, '/v1/messages');
    expect(read.text).toBe('event: ping\ndata: {"type": "ping"}\n\n');
  });

  it('is silent where the file says so', async () => {
    const server = await startUpstream(hang);
    const { post, gateway } = await startGateway(fileOf([server.url], { waiting: { enabled: false } }));
    let heads = 0;
    for (let sent = 0; sent < 2; sent++)
      post(chat).then(
        () => heads++,
        () => {},
      );
    await until('one waits', () => gateway.flow.stats().waiting === 1);
    vi.advanceTimersByTime(40_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(heads).toBe(0);
  });

  it('shows life through prefill, also once its server has sent a head', async () => {
    const server = await startUpstream(({ res }) => {
      res.setHeader('content-type', 'text/event-stream').flushHeaders();
    });
    const { post } = await startGateway(fileOf([server.url]));
    const read = reading(await post(chat));
    vi.advanceTimersByTime(15_000);
    await until('a sign', () => read.text === ': waiting\n\n');
    server.received[0]!.res.write(sse('first'));
    await until('the first bytes', () => read.text.endsWith(sse('first')));
    vi.advanceTimersByTime(60_000 - 1);
    server.received[0]!.res.end(sse('last'));
    await read.over;
    expect(read.text).toBe(`: waiting\n\n${sse('first')}${sse('last')}`);
  });

  it('leaves quick answers and those without a stream as they are', async () => {
    const server = await startUpstream();
    const { post } = await startGateway(fileOf([server.url]));
    expect(await (await post(chat)).text()).toBe(whole);
    const json = await post({ ...chat, stream: false });
    expect(json.headers.get('content-type')).toMatch('application/json');
  });
});

describe('an answer that began ends', () => {
  beforeEach(() => void vi.useRealTimers());
  const errorIn = (text: string): Record<string, unknown> =>
    JSON.parse(/data: (\{"?(?:error|type).*)\n/.exec(text.replace(/^: waiting\n\n/, ''))?.[1] ?? '{}');

  it('by its time, as the error that it would have had', async () => {
    const { read, log, gateway } = await waiting(briefly());
    await read.over;
    expect(errorIn(read.text)).toMatchObject({
      error: { code: 'ERR_FLOW_TTL_EXPIRED', type: 'server_error', status: 503 },
    });
    expect(await metric({ gateway }, 'failed')).toBe(1);
    const line = log.find(({ event, fields }) => event === 'request' && fields.reason !== undefined);
    expect(line?.fields).toMatchObject({ status: 503, reason: 'ttl-expired' });
  });

  it.each([
    ['/v1/responses', 'event: error\n', { type: 'error', code: 'ERR_FLOW_TTL_EXPIRED', message: expect.any(String) }],
    [
      '/v1/messages',
      'event: error\n',
      { type: 'error', error: { type: 'overloaded_error', code: 'ERR_FLOW_TTL_EXPIRED' } },
    ],
  ])('in the words of %s', async (path, name, data) => {
    const { read } = await waiting(briefly(), path);
    await read.over;
    expect(read.text).toContain(name);
    expect(JSON.parse(/data: (.*)\n\n$/.exec(read.text)?.[1] ?? '{}')).toMatchObject(data);
  });

  it('by a drain', async () => {
    const { read, gateway, free } = await waiting({ waiting: soon, drain: { waiting: '10ms', streams: '1s' } });
    const closed = gateway.close();
    await read.over;
    expect(errorIn(read.text)).toMatchObject({ error: { code: 'ERR_FLOW_SHUTTING_DOWN' } });
    free();
    await closed;
  });

  it('by what the server refuses, with its status and its words', async () => {
    const { read, free } = await waiting(
      { waiting: soon, retry: { enabled: false } },
      '/v1/chat/completions',
      ({ res }) => {
        res.writeHead(400, { 'content-type': 'application/json', 'x-many': ['a', 'b'] });
        res.end('{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"long"}}');
      },
    );
    free();
    await read.over;
    expect(errorIn(read.text)).toEqual({
      error: { message: 'too long', type: 'invalid_request_error', param: 'messages', code: 'long', status: 400 },
    });
  });

  it('with an answer that is no stream, as one event', async () => {
    const { read, free } = await waiting({ waiting: soon }, '/v1/chat/completions', ({ res }) => {
      res.setHeader('content-type', 'application/json').end('{\n  "choices": []\n}');
    });
    free();
    await read.over;
    expect(read.text).toBe(': waiting\n\ndata: {\ndata:   "choices": []\ndata: }\n\n');
  });

  it('by an error that its server tells after 200, as that came', async () => {
    const told = `${sse('half')}data: {"error":{"message":"the engine died","code":500}}\n\n`;
    const { read, free, gateway } = await waiting({ waiting: soon }, '/v1/chat/completions', ({ res }) => {
      res.setHeader('content-type', 'text/event-stream').end(told);
    });
    free();
    await read.over;
    expect(read.text).toBe(`: waiting\n\n${told}`);
    expect(gateway.flow.stats().inFlight).toBe(0);
  });

  it('broken off, if the server breaks off', async () => {
    const { read, free } = await waiting({ waiting: soon }, '/v1/chat/completions', ({ res }) => {
      res.setHeader('content-type', 'text/event-stream').write(sse('half'));
      setImmediate(() => res.destroy());
    });
    free();
    await expect(read.over).rejects.toThrow();
  });

  it('by its eviction, while its server has sent nothing', async () => {
    const server = await startUpstream((asked, index) => (index === 0 ? hang : serve)(asked, index));
    const keys = [{ key: 'sk-premium', tenant: 'premium', priority: 100 }];
    const { post, gateway } = await startGateway(
      fileOf([server.url], {
        waiting: soon,
        auth: { keys, anonymous: { tenant: 'batch', priority: -10 } },
        flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' }, enableEviction: true },
      }),
    );
    const read = reading(await post(chat));
    const premium = await post({ ...chat, stream: false }, { headers: { authorization: 'Bearer sk-premium' } });
    expect(premium.status).toBe(200);
    await read.over;
    expect(errorIn(read.text)).toMatchObject({ error: { code: 'ERR_FLOW_EVICTED', status: 429 } });
    expect(gateway.flow.stats().inFlight).toBe(0);
  });

  it('by the failure of the only server, told as the answer would have been', async () => {
    const { read, free } = await waiting({ waiting: soon }, '/v1/chat/completions', ({ res }) => res.destroy());
    free();
    await read.over;
    expect(errorIn(read.text)).toMatchObject({ error: { code: 'upstream_failed', status: 502 } });
  });

  it('unread, if the client leaves, and its place is free', async () => {
    const { gateway, free, leave } = await waiting({ waiting: soon });
    leave();
    await until('nobody waits', () => gateway.flow.stats().waiting === 0);
    free();
    await until('no seat is left', () => gateway.flow.stats().inFlight === 0);
  });
});

it('another server is asked after the answer began, and the client notices nothing', async () => {
  const slow = await startUpstream(hang);
  const other = await startUpstream();
  const { post, gateway } = await startGateway(fileOf([slow.url, other.url], { timeouts: { firstToken: '20s' } }, 1));
  const answered = post(chat);
  await until('it is asked', () => slow.received.length === 1);
  vi.advanceTimersByTime(15_000);
  const read = reading(await answered);
  await until('a sign', () => read.text !== '');
  vi.advanceTimersByTime(5_000);
  await read.over;
  expect(read.text).toBe(`: waiting\n\n${whole}`);
  expect(gateway.flow.stats().inFlight).toBe(0);
});

describe('requests without a stream', () => {
  const plain = { ...chat, stream: false };

  it('get spaces before their JSON where the file says so', async () => {
    const server = await startUpstream(hang);
    const { gateway } = await startGateway(fileOf([server.url], { waiting: { json: 'whitespace' } }));
    const answered = fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(plain),
    });
    await until('it is asked', () => server.received.length === 1);
    vi.advanceTimersByTime(15_000);
    const response = await answered;
    vi.advanceTimersByTime(10_000);
    server.received[0]!.res.setHeader('content-type', 'application/json').end('{"choices":[]}');
    expect([response.status, await response.text()]).toEqual([200, '  {"choices":[]}']);
  });

  it('get nothing once a head was sent, whatever it is', async () => {
    const server = await startUpstream(({ res }) => {
      res.setHeader('content-type', 'text/event-stream').flushHeaders();
    });
    const { post } = await startGateway(fileOf([server.url], { waiting: { json: 'whitespace' } }));
    const response = await post(plain);
    vi.advanceTimersByTime(40_000);
    server.received[0]!.res.end(sse('late'));
    expect(await response.text()).toBe(sse('late'));
  });
});
