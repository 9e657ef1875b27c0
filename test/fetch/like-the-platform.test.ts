/** Each question goes to a fetch, and to `flowFetch` before that fetch: the answers are the same. */
import { createServer, type RequestListener } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, type Server } from 'node:net';
import * as undici from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Fetch, flowFetch } from '../../src/fetch/index.js';
import { until } from '../integration/support/until.js';
import { expectIdle, gated } from './flow.js';

async function listen(server: Server & { closeAllConnections?(): void }): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What came, as the server has it. */
const echo: RequestListener = (req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    const { method, rawHeaders, url } = req;
    // The two servers of a question have different ports.
    const headers = rawHeaders.join('\n').replaceAll(/127\.0\.0\.1:\d+/g, 'HOST');
    res.setHeader('content-type', 'application/json').setHeader('set-cookie', ['a=1', 'b=2']);
    res.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
  });
};

type Question = (fetch: Fetch, url: string) => unknown;
const undiciFetch = undici.fetch as unknown as Fetch;

/** The answer, or the error by what programs ask of it. */
async function answerOf(question: Question, fetch: Fetch, url: string): Promise<unknown> {
  try {
    return await question(fetch, url);
  } catch (error) {
    const { name, code, cause } = error as { name: string; code?: unknown; cause?: { name?: string; code?: unknown } };
    return { name, code, cause: cause?.code ?? cause?.name };
  }
}

async function compare(question: Question, below: Fetch, listener: RequestListener = echo): Promise<unknown> {
  const url = await listen(createServer(listener));
  const setup = gated({ fetch: below });
  const expected = await answerOf(question, below, url);
  expect(await answerOf(question, setup.fetch, url)).toEqual(expected);
  await expectIdle(setup);
  return expected;
}

interface Echoed {
  readonly method: string;
  readonly url: string;
  readonly headers: string;
  readonly body: string;
}

async function toldBy(answer: Response): Promise<Echoed> {
  return (await answer.json()) as Echoed;
}

const shown = ({ status, statusText, ok, type, redirected, url, headers, bodyUsed }: Response): object => ({
  ...{ status, statusText, ok, type, redirected, bodyUsed, path: url.replace(/^http:\/\/[^/]*/, '') },
  cookies: headers.getSetCookie(),
});

const readable = (text: string): ReadableStream => new Blob([text]).stream();
const post: RequestInit = { method: 'POST', body: 'hello', headers: { 'X-Mixed-Case': 'kept' } };

class Options {
  readonly #method = 'PUT';
  get method(): string {
    return this.#method;
  }
  get body(): string {
    return 'by a getter';
  }
}

const questions: [string, Question][] = [
  ['its signature', ({ name, length }) => [name, length]],
  ['nothing', (fetch) => (fetch as () => unknown)()],
  ['what is no URL', (fetch) => fetch('/no/host')],
  ['a scheme that is not known', (fetch) => fetch('gopher://host/')],
  ['a method that is forbidden', (fetch, url) => fetch(url, { method: 'TRACE' })],
  ['GET with a body', (fetch, url) => fetch(url, { body: 'no' })],
  ['no options at all', async (fetch, url) => (await fetch(url, null as never)).json()],
  ['a text', async (fetch, url) => (await fetch(`${url}/p?q=1`, post)).json()],
  [
    'a stream',
    async (fetch, url) =>
      (await fetch(url, { ...post, body: readable('streamed'), duplex: 'half' } as RequestInit)).json(),
  ],
  [
    'a form',
    async (fetch, url) => (await toldBy(await fetch(url, { ...post, body: new URLSearchParams({ a: 'b c' }) }))).body,
  ],
  ['its name to the server', async (fetch, url) => (await toldBy(await fetch(url))).headers],
  ['options with getters', async (fetch, url) => (await fetch(url, new Options())).json()],
  ['a data: URL', async (fetch) => [(await fetch('data:text/plain,hello')).headers.get('content-type')]],
  ['the kind of its body', async (fetch, url) => (await (await fetch(url)).blob()).type],
  ['all that an answer says', async (fetch, url) => shown(await fetch(url))],
  [
    'all that a copy of an answer says',
    async (fetch, url) => {
      const answer = await fetch(`${url}/here`);
      const copy = answer.clone();
      return [shown(copy), (await toldBy(copy)).url, (await toldBy(answer)).url, answer.bodyUsed];
    },
  ],
  ['to change the headers of an answer', async (fetch, url) => (await fetch(url)).headers.set('a', 'b')],
  ['mode no-cors', async (fetch, url) => shown(await fetch(url, { mode: 'no-cors' }))],
  [
    'an answer whose content is not what it promised',
    async (fetch, url) => (await fetch(url, { integrity: 'sha256-no' })).text(),
  ],
  [
    'a call with an aborted signal and a body',
    async (fetch, url) => {
      const reasons: string[] = [];
      const body = new ReadableStream({ cancel: ({ name }) => void reasons.push(name) });
      const init = { method: 'POST', signal: AbortSignal.abort(), body, duplex: 'half' } as RequestInit;
      const error: { name?: string } = await fetch(url, init).then(
        () => ({}),
        (thrown: Error) => thrown,
      );
      await until('the body was told', () => reasons.length > 0);
      return [error.name, reasons];
    },
  ],
  [
    'an answer that was cancelled',
    async (fetch, url) => {
      const answer = await fetch(url);
      await answer.body?.cancel();
      return answer.bodyUsed;
    },
  ],
  [
    'an answer twice',
    async (fetch, url) => {
      const answer = await fetch(url);
      await answer.text();
      return answer.text();
    },
  ],
];

describe.each<[string, Fetch, typeof Request]>([
  ['the platform’s fetch', globalThis.fetch, Request],
  ['undici’s fetch', undiciFetch, undici.Request as unknown as typeof Request],
])('%s', (_below, below, OwnRequest) => {
  it.each(questions)('is asked: %s', async (_what, question) => {
    await compare(question, below);
  });

  it.each<[string, Question]>([
    ['a Request', async (fetch, url) => (await fetch(new OwnRequest(`${url}/r`, post))).json()],
    [
      'a Request and options',
      async (fetch, url) => (await fetch(new OwnRequest(url, post), { method: 'PATCH' })).json(),
    ],
    ['a Request as options', async (fetch, url) => (await fetch(`${url}/other`, new OwnRequest(url, post))).json()],
    [
      'a Request a second time',
      async (fetch, url) => {
        const request = new OwnRequest(url, post);
        await (await fetch(request)).text();
        return fetch(request);
      },
    ],
    [
      'a Request that was aborted',
      async (fetch, url) => {
        const error = await fetch(new OwnRequest(url, { signal: AbortSignal.abort() })).catch(
          (thrown: Error) => thrown,
        );
        return (error as Error).name;
      },
    ],
  ])('is asked: %s', async (_what, question) => {
    await compare(question, below);
  });

  it.each<[string, RequestListener, Question]>([
    [
      'a redirect',
      (req, res) => void res.writeHead(req.url === '/end' ? 200 : 302, { location: '/end' }).end('x'),
      async (fetch, url) => shown(await fetch(url)),
    ],
    [
      'a redirect that is not followed',
      (_req, res) => void res.writeHead(302, { location: '/end' }).end('x'),
      async (fetch, url) => shown(await fetch(url, { redirect: 'manual' })),
    ],
    [
      'a redirect that is an error',
      (_req, res) => void res.writeHead(302, { location: '/end' }).end('x'),
      (fetch, url) => fetch(url, { redirect: 'error' }),
    ],
    [
      'headers that are too long',
      (_req, res) => void res.setHeader('x-long', 'x'.repeat(20_000)).end(),
      (fetch, url) => fetch(url),
    ],
    ['a server that hangs up', (req) => void req.socket.destroy(), (fetch, url) => fetch(url)],
    [
      'an answer that breaks off',
      (_req, res) => void res.writeHead(200, { 'content-length': '9' }).write('x', () => res.destroy()),
      async (fetch, url) => (await fetch(url)).text(),
    ],
    ['an answer of 304', (_req, res) => void res.writeHead(304).end(), async (fetch, url) => shown(await fetch(url))],
    [
      'an answer without a type',
      (_req, res) => void res.end('x'),
      async (fetch, url) => (await (await fetch(url)).blob()).type,
    ],
    [
      'an error whose body is still to come',
      (_req, res) => void res.writeHead(418).write('x'),
      async (fetch, url) => {
        const answer = await fetch(url);
        await answer.body?.cancel();
        return answer.status;
      },
    ],
  ])('is asked: %s', async (_what, listener, question) => {
    await compare(question, below, listener);
  });
});

describe('the platform’s fetch', () => {
  it('tells where a Request comes from', async () => {
    const url = await listen(createServer(echo));
    const setup = gated({ fetch: globalThis.fetch });
    const request = new Request(url, { referrer: `${url}/page`, referrerPolicy: 'unsafe-url' });
    // Not compared with the platform: that of Node 24 forgets it, too.
    expect((await toldBy(await setup.fetch(request))).headers).toContain('referer\nhttp://HOST/page');
    await expectIdle(setup);
  });
});

describe('undici’s fetch', () => {
  it('answers with its own Response, which a program may ask for', async () => {
    const isOwn: Question = async (fetch, url) =>
      (await fetch(url)) instanceof (undici.Response as unknown as typeof Response);
    expect(await compare(isOwn, undiciFetch)).toBe(true);
  });

  it('has its cookies over HTTP/2', async () => {
    const server = createHttp2Server();
    server.on('stream', (stream) => {
      stream.respond({ ':status': 200, 'set-cookie': ['a=1', 'b=2'] });
      stream.end('served');
    });
    const url = await listen(server);
    const setup = gated({ fetch: undiciFetch });
    const dispatcher = new undici.H2CClient(url);
    onTestFinished(() => dispatcher.destroy());
    for (const fetch of [undiciFetch, setup.fetch]) {
      const answer = await fetch(url, { dispatcher, headers: { 'content-type': 'text/plain' } } as object);
      expect([answer.headers.getSetCookie(), await answer.text()]).toEqual([['a=1', 'b=2'], 'served']);
    }
    await expectIdle(setup);
  });

  it('goes through a proxy', async () => {
    const url = await listen(createServer(echo));
    const proxy = createServer();
    let tunnels = 0;
    proxy.on('connect', (req, socket) => {
      tunnels += 1;
      const [host, port] = req.url!.split(':');
      const target = connect(Number(port), host, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
      target.pipe(socket).pipe(target);
      socket.on('error', () => target.destroy());
      target.on('error', () => socket.destroy());
    });
    const dispatcher = new undici.ProxyAgent({ uri: await listen(proxy), proxyTunnel: true });
    onTestFinished(() => dispatcher.destroy());
    const setup = gated({ fetch: undiciFetch });
    for (const fetch of [undiciFetch, setup.fetch])
      expect(await (await fetch(url, { dispatcher } as object)).json()).toMatchObject({ method: 'GET' });
    expect(tunnels).toBeGreaterThan(0);
    await expectIdle(setup);
  });

  it('takes a Request of its own to an endpoint of the pool', async () => {
    const url = await listen(createServer(echo));
    const { flow } = gated();
    const fetch = flowFetch(
      {
        enqueue: async (request, key) => {
          const outcome = await flow.enqueue(request, key);
          if (outcome.type === 'Dispatched')
            Object.defineProperty(outcome.lease, 'endpoint', { value: { id: url, labels: {} } });
          return outcome;
        },
      },
      { fetch: undiciFetch },
    );
    const request = new undici.Request('http://model/v1/chat', {
      method: 'POST',
      body: 'hello',
      headers: { 'x-a': 'b' },
    });
    const answer = await toldBy(await fetch(request as unknown as Request));
    expect(answer).toMatchObject({ method: 'POST', url: '/v1/chat', body: 'hello' });
    expect(answer.headers).toContain('x-a\nb');
  });
});

describe('a body that is never sent', () => {
  it.each(['aborted while it waits', 'dropped'])('is told, where the call was %s', async (how) => {
    const setup = gated({}, how === 'dropped' ? { limits: { maxRequests: 0 } } : {});
    const held = await setup.flow.enqueue({ byteSize: 0 } as never, { fairnessId: 'other' });
    const reasons: unknown[] = [];
    const body = new ReadableStream({ cancel: (reason) => void reasons.push(reason) });
    const abort = new AbortController();
    const call = setup.fetch('http://model/', {
      method: 'POST',
      body,
      signal: abort.signal,
      duplex: 'half',
    } as RequestInit);
    if (how === 'dropped') expect((await call).status).toBe(429);
    else {
      await until('it waits', () => setup.flow.stats().waiting === 1);
      abort.abort('never mind');
      await expect(call).rejects.toBe('never mind');
    }
    expect(reasons).toEqual([how === 'dropped' ? undefined : 'never mind']);
    if (held.type === 'Dispatched') held.lease.release();
  });
});
