/** Answers that begin while their requests wait, in each framework in its own way: handlers notice nothing of it. */
import { once } from 'node:events';
import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowControl as expressFlowControl } from '../../src/adapters/express/index.js';
import { flowControl as fastifyFlowControl } from '../../src/adapters/fastify/index.js';
import { flowControl as honoFlowControl } from '../../src/adapters/hono/index.js';
import { flowControl as koaFlowControl } from '../../src/adapters/koa/index.js';
import { flowControl as nodeFlowControl } from '../../src/adapters/node/index.js';
import { concurrencyDetector, explainWait, FlowController, type Lease } from '../../src/index.js';
import { until } from './support/until.js';

/** Options that no request is needed for: they fit every framework. */
type Waiting = Omit<
  NonNullable<NonNullable<Parameters<typeof nodeFlowControl>[1]>['waiting']>,
  'isStream' | 'place'
> & { readonly place: () => ReturnType<typeof explainWait> };

/** What a handler answers. */
interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const events: Answer = { status: 200, type: 'text/event-stream', body: 'data: 1\n\ndata: 2\n\n' };
const problem: Answer = {
  status: 400,
  type: 'application/json',
  body: '{"error":{"message":"too long","code":"long"}}',
};
const streamOf = (body: string): Readable => Readable.from(body.match(/.+\n\n/g) ?? [body], { objectMode: false });

type Frameworks = Readonly<
  Record<string, (flow: FlowController, answer: Answer, waiting: Waiting) => Server | Promise<Server>>
>;

const plain =
  ({ status, type, body }: Answer) =>
  (_req: IncomingMessage, res: ServerResponse): void => {
    res.writeHead(status, { 'content-type': type });
    streamOf(body).pipe(res);
  };

const frameworks: Frameworks = {
  'node:http': (flow, answer, waiting) => {
    const limit = nodeFlowControl(flow, { waiting });
    return http.createServer((req, res) => limit(req, res, () => plain(answer)(req, res)));
  },
  'node:http with raw headers': (flow, { status, type, body }, waiting) => {
    const limit = nodeFlowControl(flow, { waiting });
    return http.createServer((req, res) =>
      limit(req, res, () => void res.writeHead(status, 'Said', ['content-type', type, 'x-more', '1']).end(body)),
    );
  },
  Express: (flow, { status, type, body }, waiting) => {
    const app = express();
    app.use(expressFlowControl(flow, { waiting }));
    app.use((_req, res) => {
      res.status(status).set('content-type', type);
      if (status < 400) streamOf(body).pipe(res);
      else res.json(JSON.parse(body));
    });
    return http.createServer(app);
  },
  Koa: (flow, { status, type, body }, waiting) => {
    const app = new Koa();
    app.use(koaFlowControl(flow, { waiting }));
    app.use((ctx) => {
      ctx.status = status;
      ctx.type = type;
      ctx.body = status < 400 ? streamOf(body) : body;
    });
    return http.createServer(app.callback());
  },
  Fastify: async (flow, { status, type, body }, waiting) => {
    const app = fastify();
    await app.register(fastifyFlowControl(flow, { waiting }));
    app.get('/*', (_request, reply) =>
      reply
        .code(status)
        .type(type)
        .send(status < 400 ? streamOf(body) : body),
    );
    await app.ready();
    return app.server;
  },
  'Hono on Node': (flow, { status, type, body }, waiting) => {
    const app = new Hono<{ Bindings: HttpBindings }>();
    app.use(honoFlowControl(flow, { waiting }));
    app.get('/*', (c) =>
      c.body(status < 400 ? (Readable.toWeb(streamOf(body)) as ReadableStream<Uint8Array>) : body, status as 200, {
        'content-type': type,
      }),
    );
    return createAdaptorServer({ fetch: app.fetch }) as Server;
  },
  'node:http2': (flow, answer, waiting) => {
    const limit = nodeFlowControl(flow, { waiting });
    const handle = plain(answer) as unknown as (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => void;
    return http2.createServer((req, res) => limit(req, res, () => handle(req, res))) as unknown as Server;
  },
};

const accept = 'text/event-stream';

/** Status and text, over HTTP/1 or HTTP/2. */
async function ask(server: Server, isHttp2: boolean): Promise<{ status: number; text: string }> {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  if (!isHttp2) {
    const response = await fetch(url, { headers: { accept } });
    return { status: response.status, text: await response.text() };
  }
  const session = http2.connect(url);
  onTestFinished(() => session.destroy());
  const stream = session.request({ accept });
  const status = new Promise<number>((resolve) => stream.once('response', (head) => resolve(Number(head[':status']))));
  let text = '';
  for await (const chunk of stream) text += chunk;
  return { status: await status, text };
}

/** One request holds the seat, another one waits until its answer has begun. */
async function begun(name: string, answer: Answer, ttl: number) {
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    defaultRequestTtl: ttl,
  });
  const held = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'other' });
  const told: string[] = [];
  const waiting: Waiting = {
    after: 10,
    every: 3_600_000,
    place: () => explainWait(flow, () => true),
    onSign: (what) => told.push(what),
  };
  const server = await frameworks[name]!(flow, answer, waiting);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const answered = ask(server, name === 'node:http2');
  await until('the answer has begun', () => told.includes('sign'));
  return { flow, told, answered, lease: (held as unknown as { lease: Lease }).lease };
}

const sign = ': waiting position=1 eta=1s\n\n';

describe.each(Object.keys(frameworks))('%s: an answer that began', (name) => {
  it('goes on with the handler’s events', async () => {
    const { answered, lease, told, flow } = await begun(name, events, 0);
    lease.release();
    expect(await answered).toEqual({ status: 200, text: `${sign}${events.body}` });
    expect(told).toEqual(['begun', 'sign']);
    await until('the seat is free', () => flow.stats().inFlight === 0);
  });

  it('tells of the handler’s error as an event', async () => {
    const { answered, lease, told } = await begun(name, problem, 0);
    lease.release();
    const error = { type: 'server_error', param: null, message: 'too long', code: 'long', status: 400 };
    expect(await answered).toEqual({ status: 200, text: `${sign}data: ${JSON.stringify({ error })}\n\n` });
    expect(told).toEqual(['begun', 'sign', 'failed']);
  });

  it('tells of a drop with the same words as the answer would have had', async () => {
    const { answered, lease } = await begun(name, events, 150);
    const { status, text } = await answered;
    const { error, code, reason } = JSON.parse(text.slice(`${sign}data: `.length));
    expect([status, code, reason]).toEqual([200, 'ERR_FLOW_TTL_EXPIRED', 'ttl-expired']);
    expect(error).toMatchObject({
      code,
      status: 503,
      message: expect.stringContaining('waited'),
      type: 'server_error',
    });
    expect(error.retry_after_ms).toBeGreaterThan(0);
    lease.release();
  });
});

/** A server whose only seat another request holds. */
async function full(waiting: NonNullable<Parameters<typeof nodeFlowControl>[1]>['waiting']) {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  const held = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'other' });
  const limit = nodeFlowControl(flow, { waiting });
  const server = http.createServer((req, res) => limit(req, res, () => res.end('served'))).listen(0);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const get = (headers = {}) => http.get({ port: (server.address() as AddressInfo).port, headers });
  return { flow, server, get, release: () => (held as unknown as { lease: Lease }).lease.release() };
}

it('a client that leaves an answer that began gives its place back', async () => {
  const { flow, get } = await full({ after: 10, every: 3_600_000 });
  const [response] = (await once(get({ accept }), 'response')) as [IncomingMessage];
  expect(flow.stats().waiting).toBe(1);
  response.destroy();
  await until('its place is free', () => flow.stats().waiting === 0);
});

it('a client that does not read gets no signs until it reads on', async () => {
  let signs = 0;
  const { server, get, release } = await full({ after: 1, every: 1, onSign: () => void signs++ });
  const connected = once(server, 'connection') as Promise<[Socket]>;
  const answered = once(get({ accept }), 'response') as Promise<[IncomingMessage]>;
  const [socket] = await connected;
  socket.cork();
  await until('nothing more fits', () => socket.writableNeedDrain);
  const before = signs;
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(signs).toBe(before);
  socket.uncork();
  const [response] = await answered;
  response.resume();
  await until('the signs go on', () => signs > before + 1);
  release();
  await once(response, 'end');
});

it('requests without a stream are told 102 where the host says so', async () => {
  const { get, release } = await full({ after: 10, every: 3_600_000, informational: true });
  const request = get();
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  const [{ statusCode }] = (await once(request, 'information')) as [{ statusCode: number }];
  expect(statusCode).toBe(102);
  release();
  const [response] = await answered;
  response.resume();
  expect(response.statusCode).toBe(200);
});

it('options that cannot be right are told at once', () => {
  const flow = new FlowController({ maxConcurrency: 1 });
  expect(() => nodeFlowControl(flow, { waiting: { after: 0, json: 'spaces' as never } })).toThrow(
    /waiting\.after: expected a number above 0; got 0[\s\S]*waiting\.json: expected one of "whitespace"/,
  );
});
