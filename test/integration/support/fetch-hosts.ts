/**
 * Where requests and responses are all that flow control sees, as on fetch runtimes: behind real sockets, of which only
 * the tests know.
 */
import type { Server } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { flowControl as honoFlowControl } from '../../../src/adapters/hono/index.js';
import { type RequestFlow, flowControl as webFlowControl } from '../../../src/adapters/web/index.js';
import { type Application, type Host, type Io, pathOf } from './application.js';

type Fetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

function serve(fetch: Fetch): Server {
  return createAdaptorServer({ fetch: (request, env) => fetch(request, env as HttpBindings) }) as Server;
}

async function responseOf({ handler }: Application, io: Pick<Io, 'req' | 'path' | 'flow'>): Promise<Response> {
  let response = new Response(null, { status: 404 });
  await handler({
    ...io,
    send(status, body) {
      response = new Response(body, { status });
    },
    stream() {
      const body = new PassThrough();
      const readable = Readable.toWeb(body) as ReadableStream<Uint8Array>;
      response = new Response(readable, { headers: { 'content-type': 'text/event-stream' } });
      return body;
    },
  });
  return response;
}

function honoServer(application: Application): Server {
  const bindings = new WeakMap<Request, HttpBindings>();
  const app = new Hono();
  app.onError((error, c) => {
    application.onError?.(error);
    return c.text('Internal Server Error', 500);
  });
  app.use(honoFlowControl(application.gate, application.options));
  app.all('/*', (c) => {
    const { incoming: req } = bindings.get(c.req.raw) as HttpBindings;
    return responseOf(application, { req, path: pathOf(c.req.path), flow: c.var.flow });
  });
  return serve((request, env) => {
    bindings.set(request, env);
    return app.fetch(request);
  });
}

function webServer(application: Application): Server {
  const inTurn = webFlowControl(application.gate, application.options);
  return serve(async (request, { incoming: req }) => {
    const handle = (_: Request, flow: RequestFlow) => responseOf(application, { req, path: pathOf(req.url), flow });
    return inTurn(request, handle).catch((error) => {
      application.onError?.(error);
      return new Response('Internal Server Error', { status: 500 });
    });
  });
}

export const fetchHosts: readonly Host[] = [
  { name: 'Hono 4 on a fetch runtime', protocol: 'http1', create: honoServer },
  { name: 'a fetch runtime', protocol: 'http1', create: webServer },
];
