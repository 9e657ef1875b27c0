/** What clients and browsers may ask of each path, and in which form a body may come. */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { errorOf, fileOf, startGateway } from '../support/gateway.js';
import { startUpstream } from '../support/upstream.js';

async function started(more: object = {}, upstream: object = {}) {
  const server = await startUpstream();
  const { gateway, post } = await startGateway(fileOf([{ id: 'a', url: server.url, ...upstream }], more));
  return { server, gateway, post, url: gateway.url };
}

describe('methods', () => {
  it.each([
    ['DELETE', '/v1/models', 'GET, HEAD, OPTIONS'],
    ['POST', '/v1/models', 'GET, HEAD, OPTIONS'],
    ['GET', '/v1/chat/completions', 'POST, OPTIONS'],
    ['PUT', '/v1/chat/completions', 'POST, OPTIONS'],
    ['POST', '/healthz', 'GET, HEAD'],
    ['DELETE', '/metrics', 'GET, HEAD'],
  ])('%s %s is told 405 and what is possible', async (method, path, allow) => {
    const { url } = await started();
    const response = await fetch(url + path, { method });
    expect(response.headers.get('allow')).toBe(allow);
    expect(await errorOf(response)).toMatchObject({ status: 405, code: 'method_not_allowed' });
  });

  it('HEAD of what can be read has its head and no body', async () => {
    const { url } = await started();
    for (const path of ['/v1/models', '/v1/models/llama', '/healthz', '/readyz', '/metrics']) {
      const response = await fetch(url + path, { method: 'HEAD' });
      expect([path, response.status, await response.text()]).toEqual([path, 200, '']);
    }
  });

  it('OPTIONS tells the methods of a path, without a key, and asks no server', async () => {
    const { url, server } = await started({ auth: { keys: [{ key: 'secret', tenant: 'a' }] } });
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'OPTIONS' });
    expect([response.status, response.headers.get('allow')]).toEqual([204, 'POST, OPTIONS']);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(server.received).toHaveLength(0);
  });
});

describe('cors', () => {
  const preflight = (url: string, origin: string): Promise<Response> =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type',
      },
    });

  it('lets the origins of the file ask, and no others', async () => {
    const { url } = await started({ cors: { origins: ['https://chat.example.com'], maxAge: '5m' } });
    const allowed = await preflight(url, 'https://chat.example.com');
    expect(allowed.status).toBe(204);
    expect(Object.fromEntries(allowed.headers)).toMatchObject({
      'access-control-allow-origin': 'https://chat.example.com',
      'access-control-allow-methods': 'POST, OPTIONS',
      'access-control-allow-headers': 'authorization, content-type',
      'access-control-max-age': '300',
      vary: 'origin',
    });
    const other = await preflight(url, 'https://evil.example.com');
    expect([...other.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it('lets scripts read answers and errors, and what they say of the queue', async () => {
    const server = await startUpstream(({ res }) => {
      res.setHeader('access-control-allow-origin', 'https://the-server-knows-nothing.example').end('{}');
    });
    const { gateway, post } = await startGateway(fileOf([server.url], { cors: { origins: '*' } }));
    const headers = { origin: 'https://anywhere.example' };
    const answers = [
      await post({ model: 'llama' }, { headers }),
      await fetch(`${gateway.url}/v1/chat/completions`, { headers }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 405]);
    for (const answer of answers) {
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('access-control-expose-headers')).toContain('retry-after');
    }
  });

  it.each([
    [{ origins: 'https://a.example' }],
    [{ origins: ['https://a.example/'] }],
    [{ origins: ['a.example'] }],
    [{}],
  ])('is refused when no browser could send it: %o', async (cors) => {
    await expect(started({ cors })).rejects.toThrow(FlowConfigError);
  });
});

describe('the type of a body', () => {
  it.each([
    ['a form, as curl sends what it is not told', 'application/x-www-form-urlencoded', '/v1/chat/completions'],
    ['text', 'text/plain', '/v1/completions'],
    ['bytes, at a path that takes JSON', 'application/octet-stream', '/v1/chat/completions'],
    ['text, at a path of which nothing is known', 'text/plain;charset=UTF-8', '/v1/something/new'],
    ['at a path that is written otherwise', 'application/octet-stream', '/v1/%63hat/completions'],
    ['at a path that is encoded twice', 'application/octet-stream', '/v1/%2563hat/completions'],
    ['at a path in capitals', 'application/octet-stream', '/v1/Chat/Completions'],
    ['at a path with empty segments', 'application/octet-stream', '/v1//chat///completions//'],
    ['at a path with parameters', 'application/octet-stream', '/v1/chat;v=1/completions;a=b'],
    ['at a path with encoded parameters', 'application/octet-stream', '/v1/embeddings%3Ba=b'],
  ])('is told 415 where JSON was sent under another name: %s', async (_, type, path) => {
    const { url, server } = await started({}, { labels: { model: 'llama' } });
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': type },
      body: '{"model":"other"}',
    });
    expect(response.headers.get('accept-post')).toBe('application/json');
    expect(await errorOf(response)).toMatchObject({ status: 415, code: 'unsupported_media_type' });
    expect(server.received).toHaveLength(0);
  });

  it.each(['utf-7', '"UTF-16"', 'utf-8; charset=utf-7', 'ISO-8859-1', '', "UTF-8''utf-7"])(
    'is told 415 where its text is not UTF-8: %s',
    async (charset) => {
      const { url, server } = await started({}, { labels: { model: 'llama' } });
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': `application/json; charset=${charset}` },
        body: '{"model":"llama"}',
      });
      expect(await errorOf(response)).toMatchObject({ status: 415, code: 'unsupported_charset' });
      expect(server.received).toHaveLength(0);
    },
  );

  it.each(['utf-8', 'UTF8', '"utf-8" ; profile="x"'])('passes where it is: %s', async (charset) => {
    const { url } = await started();
    const headers = { 'content-type': `application/json;Charset = ${charset}` };
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: '{"model":"llama"}' });
    expect(response.status).toBe(200);
  });

  it('is told 415 where it is missing', async () => {
    const { url } = await started();
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body: new Uint8Array([123, 125]) });
    expect(response.status).toBe(415);
  });

  it.each([
    ['application/vnd.api+json', '/v1/chat/completions'],
    ['multipart/form-data; boundary=x', '/v1/audio/transcriptions'],
    ['application/octet-stream', '/v1/files'],
  ])('passes: %s', async (type, path) => {
    const { url } = await started();
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': type },
      body: '{"model":"llama"}',
    });
    expect(response.status).toBe(200);
  });
});

describe('a packed body', () => {
  const body = JSON.stringify({ model: 'asked', messages: [{ role: 'user', content: 'x'.repeat(5_000) }] });

  it.each([
    ['gzip', gzipSync(body)],
    ['x-gzip', gzipSync(body)],
    ['deflate', deflateSync(body)],
    ['br', brotliCompressSync(body)],
    ['identity', Buffer.from(body)],
  ])('is unpacked, routed by its model, and sent on as it was: %s', async (encoding, bytes) => {
    const { post, server } = await started({ models: { aliases: { asked: 'llama' } } }, { labels: { model: 'llama' } });
    const response = await post('', { body: new Uint8Array(bytes), headers: { 'content-encoding': encoding } });
    expect(response.status).toBe(200);
    expect(server.received[0]?.body).toBe(body.replace('asked', 'llama'));
    expect(server.received[0]?.req.headers).toMatchObject({ 'content-length': String(body.length) });
    expect(server.received[0]?.req.headers).not.toHaveProperty('content-encoding');
  });

  it('is told 413 as soon as it unpacks to more than a request may have', async () => {
    const { post, server } = await started({ limits: { maxRequestBytes: '64Ki' } });
    const bomb = gzipSync(`{"prompt":"${'0'.repeat(20_000_000)}"}`);
    expect(bomb.length).toBeLessThan(65_536);
    const response = await post('', { body: new Uint8Array(bomb), headers: { 'content-encoding': 'gzip' } });
    expect(await errorOf(response)).toMatchObject({ status: 413, code: 'request_too_large' });
    expect(server.received).toHaveLength(0);
  });

  it.each([
    ['packed otherwise', 'gzip', Buffer.from(body), 400, 'invalid_encoding'],
    ['cut short', 'gzip', gzipSync(body).subarray(0, 40), 400, 'invalid_encoding'],
    ['packed by what is not known here', 'zstd', Buffer.from(body), 415, 'unsupported_encoding'],
    ['packed twice', 'gzip, gzip', gzipSync(gzipSync(body)), 415, 'unsupported_encoding'],
    ['no JSON inside', 'gzip', gzipSync('[1]'), 400, 'invalid_json'],
  ])('is refused when it is %s', async (_, encoding, bytes, status, code) => {
    const { post } = await started();
    const response = await post('', { body: new Uint8Array(bytes), headers: { 'content-encoding': encoding } });
    expect(await errorOf(response)).toMatchObject({ status, code });
  });
});

describe('/v1/models offers what is routed', () => {
  const idsOf = async (url: string): Promise<string[]> => {
    const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
    return data.map(({ id }) => id).sort();
  };

  it('and not what a server lists beside its label', async () => {
    const { url } = await started(
      { models: { aliases: { mine: 'labelled', lost: 'llama' } } },
      { labels: { model: 'labelled, adapter' } },
    );
    expect(await idsOf(url)).toEqual(['adapter', 'labelled', 'mine']);
  });

  it('also where no server answers, but a label tells', async () => {
    const { gateway } = await startGateway(
      fileOf([{ id: 'a', url: 'http://127.0.0.1:9', labels: { model: 'llama' } }]),
    );
    expect(await idsOf(gateway.url)).toEqual(['llama']);
  });

  it('of the list in the file, those that lead somewhere', async () => {
    const { url } = await started(
      { models: { list: ['llama', 'gone', 'mine'], aliases: { mine: 'llama' } } },
      { labels: { model: 'llama' } },
    );
    expect(await idsOf(url)).toEqual(['llama', 'mine']);
  });
});

describe('closing with a delay', () => {
  it('serves on while /readyz says that it will not for long', async () => {
    const { gateway, post, url } = await started();
    let isClosed = false;
    const closing = gateway.close({ delayMs: 60_000 }).then(() => {
      isClosed = true;
    });
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'draining', endpoints: 1, available: 1 }]);
    const served = await post({ model: 'llama' });
    expect([served.status, served.headers.get('connection')]).toEqual([200, 'close']);
    expect(isClosed).toBe(false);
    await gateway.close();
    await closing;
    await expect(fetch(`${url}/readyz`)).rejects.toThrow();
  });
});
