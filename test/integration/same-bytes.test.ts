/**
 * An adapter changes nothing that it need not: applications with flow control and without it get the same requests,
 * byte by byte, and send the same bytes; their handlers see the same events in the same order.
 */
import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import express from 'express';
import fastify, { type FastifyRequest } from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flowControl as expressFlowControl } from '../../src/adapters/express/index.js';
import { flowControl as fastifyFlowControl } from '../../src/adapters/fastify/index.js';
import { flowControl as honoFlowControl } from '../../src/adapters/hono/index.js';
import { flowControl as koaFlowControl } from '../../src/adapters/koa/index.js';
import { flowControl as nodeFlowControl } from '../../src/adapters/node/index.js';
import { concurrencyDetector, FlowController } from '../../src/index.js';
import { until } from './support/until.js';

/** What a handler answers; a list goes out piece by piece. */
interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | readonly string[];
}

const answers: Readonly<Record<string, (req: IncomingMessage, body: string) => Answer>> = {
  '/echo': ({ method }, body) => ({
    status: 200,
    headers: { 'x-length': String(body.length) },
    body: `${method} ${body}`,
  }),
  '/empty': () => ({ status: 204 }),
  '/cookies': () => ({ status: 201, headers: { 'set-cookie': ['a=1', 'b=2'] }, body: 'cookies' }),
  '/moved': () => ({ status: 302, headers: { location: '/echo' } }),
  '/part': ({ headers }) =>
    headers.range === undefined
      ? { status: 200, headers: { 'accept-ranges': 'bytes' }, body: '0123456789' }
      : { status: 206, headers: { 'content-range': 'bytes 2-5/10' }, body: '2345' },
  '/stream': () => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: ['data: 1\n\n', 'data: 2\n\n'],
  }),
  '/sized': () => ({ status: 200, headers: { 'content-length': '6' }, body: ['abc', 'def'] }),
  '/wrong': () => ({ status: 418, headers: { 'content-type': 'application/json' }, body: '{"error":"teapot"}' }),
};

type Log = (event: string) => void;
type Handle = (req: IncomingMessage) => Promise<Answer>;

/** Reads the body, notes what it sees, and answers. */
function handlerOf(log: Log): Handle {
  return async (req) => {
    log(`begins ${req.method} ${req.url}`);
    req.once('aborted', () => log('aborted'));
    let body = '';
    try {
      for await (const chunk of req) body += chunk;
    } catch {
      log('body broke off');
    }
    log(`body ${body.length}, trailers ${JSON.stringify(req.trailers)}`);
    return answers[req.url ?? '']?.(req, body) ?? { status: 404, body: 'nothing there' };
  };
}

const streamOf = (body: readonly string[]): Readable => Readable.from(body, { objectMode: false });
const controller = (): FlowController =>
  new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 100 }) });

function sendPlain(res: ServerResponse, { status, headers = {}, body }: Answer): void {
  res.writeHead(status, headers);
  if (Array.isArray(body)) streamOf(body).pipe(res);
  else res.end(body);
}

/** Each framework in its own way, with flow control where a controller is given. */
const frameworks: Readonly<Record<string, (handle: Handle, flow?: FlowController) => Server | Promise<Server>>> = {
  'node:http': (handle, flow) => {
    const serve = (req: IncomingMessage, res: ServerResponse): void =>
      void handle(req).then((answer) => sendPlain(res, answer));
    if (flow === undefined) return http.createServer(serve);
    const limit = nodeFlowControl(flow);
    return http.createServer((req, res) => limit(req, res, () => serve(req, res)));
  },
  Express: (handle, flow) => {
    const app = express();
    if (flow !== undefined) app.use(expressFlowControl(flow));
    app.use(async (req, res) => {
      const { status, headers = {}, body } = await handle(req);
      res.status(status).set(headers);
      if (Array.isArray(body)) streamOf(body).pipe(res);
      else if (body === undefined) res.end();
      else res.send(body);
    });
    return http.createServer(app);
  },
  Koa: (handle, flow) => {
    const app = new Koa();
    app.silent = true;
    if (flow !== undefined) app.use(koaFlowControl(flow));
    app.use(async (ctx) => {
      const { status, headers = {}, body } = await handle(ctx.req);
      ctx.status = status;
      if (body !== undefined) ctx.body = Array.isArray(body) ? streamOf(body) : body;
      ctx.set(headers as Record<string, string>);
    });
    return http.createServer(app.callback());
  },
  Fastify: async (handle, flow) => {
    const app = fastify();
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request: FastifyRequest, _body: unknown, done: (error: null) => void) =>
      done(null),
    );
    if (flow !== undefined) await app.register(fastifyFlowControl(flow));
    app.all('/*', async (request, reply) => {
      const { status, headers = {}, body } = await handle(request.raw);
      reply.code(status).headers(headers);
      return reply.send(Array.isArray(body) ? streamOf(body) : body);
    });
    await app.ready();
    return app.server;
  },
  Hono: (handle, flow) => {
    const app = new Hono<{ Bindings: HttpBindings }>();
    if (flow !== undefined) app.use(honoFlowControl(flow));
    app.all('/*', async (c) => {
      const { status, headers = {}, body } = await handle(c.env.incoming);
      for (const [name, value] of Object.entries(headers))
        for (const each of [value].flat()) c.header(name, each, { append: true });
      if (body === undefined) return c.body(null, status as 200);
      if (!Array.isArray(body)) return c.body(body as string, status as 200);
      const stream = new PassThrough();
      streamOf(body).pipe(stream);
      return c.body(Readable.toWeb(stream) as ReadableStream<Uint8Array>, status as 200);
    });
    return createAdaptorServer({ fetch: app.fetch }) as Server;
  },
};

/** What goes over the wire; what follows `cut` never goes. */
interface Shape {
  readonly name: string;
  readonly text: string;
  readonly isCut?: boolean;
}

const bodies = {
  'no body': ['', ''],
  'a body': ['content-length: 5\r\n', 'hello'],
  'a large body': ['content-length: 100000\r\n', 'x'.repeat(100_000)],
  'a chunked body': ['transfer-encoding: chunked\r\n', '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'],
  trailers: ['transfer-encoding: chunked\r\ntrailer: x-sum\r\n', '3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n'],
} as const;

function request(method: string, path: string, [header, body]: readonly [string, string], more = ''): string {
  return `${method} ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n${more}${header}\r\n${body}`;
}

const close = 'connection: close\r\n';
const shapes: readonly Shape[] = [
  ...['GET', 'HEAD', 'OPTIONS', 'DELETE'].flatMap((method) =>
    [...Object.keys(answers), '/missing'].map((path) => ({
      name: `${method} ${path}`,
      text: request(method, path, bodies['no body'], close),
    })),
  ),
  ...['POST', 'PUT', 'PATCH'].flatMap((method) =>
    ['/echo', '/empty', '/stream', '/sized', '/wrong', '/missing'].flatMap((path) =>
      Object.entries(bodies).map(([name, body]) => ({
        name: `${method} ${path} with ${name}`,
        text: request(method, path, body, close),
      })),
    ),
  ),
  ...['GET', 'HEAD'].map((method) => ({
    name: `${method} of a range`,
    text: request(method, '/part', bodies['no body'], `range: bytes=2-5\r\n${close}`),
  })),
  ...Object.entries(bodies).flatMap(([name, body]) =>
    ['/echo', '/stream', '/sized', '/cookies', '/empty', '/wrong'].flatMap((path) => [
      {
        name: `two requests in one piece: ${path} with ${name}`,
        text: request('POST', path, body) + request('POST', '/echo', body, close),
      },
      {
        name: `HTTP/1.0: ${path} with ${name}`,
        text: request('POST', path, body).replace('HTTP/1.1', 'HTTP/1.0'),
      },
    ]),
  ),
  {
    name: 'three requests in one piece',
    text: ['/echo', '/stream', '/echo']
      .map((path, i) => request('GET', path, bodies['no body'], i === 2 ? close : ''))
      .join(''),
  },
  {
    name: 'a request that expects to be told to go on',
    text: request('POST', '/echo', bodies['a body'], `expect: 100-continue\r\n${close}`),
  },
  { name: 'an unknown expectation', text: request('POST', '/echo', bodies['a body'], `expect: tea\r\n${close}`) },
  {
    name: 'names in odd cases',
    text: `GET /echo HTTP/1.1\r\nHOST: a\r\nX-Odd: 1\r\nx-odd: 2\r\nConnection: CLOSE\r\n\r\n`,
  },
  { name: 'a query that is odd', text: request('GET', '/echo?a=%00&&b', bodies['no body'], close) },
  { name: 'what is no HTTP', text: 'HELLO\r\n\r\n' },
  { name: 'a head that is cut off', text: 'POST /echo HTTP/1.1\r\nhos', isCut: true },
  ...['/echo', '/stream', '/empty'].flatMap((path) => [
    {
      name: `a body that is cut off: ${path}`,
      text: request('POST', path, ['content-length: 9\r\n', 'hell']),
      isCut: true,
    },
    {
      name: `chunks that are cut off: ${path}`,
      text: request('POST', path, ['transfer-encoding: chunked\r\n', '3\r\nabc\r\n4\r\nde']),
      isCut: true,
    },
  ]),
];

/** All bytes of the answer, but for the date, and for what flow control is there to add. */
async function exchange(port: number, { text, isCut = false }: Shape): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  // A server may close before it has read everything: what is left is written to nobody.
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await new Promise((resolve) => socket.write(text, resolve));
  if (isCut) {
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.destroy();
  }
  await closed;
  return Buffer.concat(chunks)
    .toString('latin1')
    .replaceAll(/^date: .*\r\n/gim, '')
    .replaceAll(/^x-llm-d-flow-queue-duration-ms: .*\r\n/gim, '');
}

it('there are 200 shapes of requests', () => {
  expect(new Set(shapes.map(({ name }) => name)).size).toBe(shapes.length);
  expect(shapes.length).toBeGreaterThanOrEqual(200);
});

describe.each(Object.entries(frameworks))('%s', (_, create) => {
  const logs: [string[], string[]] = [[], []];
  const servers: Server[] = [];
  const flow = controller();

  beforeAll(async () => {
    for (const [i, given] of [undefined, flow].entries()) {
      const server = await create(
        handlerOf((event) => logs[i]!.push(event)),
        given,
      );
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      servers.push(server);
    }
  });
  afterAll(async () => {
    for (const server of servers) server.closeAllConnections();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  });

  it.each(shapes)('$name', async (shape) => {
    for (const log of logs) log.length = 0;
    const [without, with_] = servers.map((server) => (server.address() as AddressInfo).port) as [number, number];
    const bytes = await exchange(without, shape);
    const theirs = await exchange(with_, shape);
    await until('both have told the same', () => logs[0].length === logs[1].length);
    expect(theirs).toBe(bytes);
    expect(logs[1]).toEqual(logs[0]);
    await until('no seat is left', () => flow.stats().inFlight === 0);
  });

  it('flow control was in the way of one of the two', () => {
    expect(flow.stats().dispatched).toBeGreaterThan(shapes.length / 2);
  });
});
