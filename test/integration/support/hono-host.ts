/** The application on Hono 4, with @hono/node-server. */
import http2 from 'node:http2';
import type { Server } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { flowControl } from '../../../src/adapters/hono/index.js';
import { type Application, pathOf } from './application.js';

export function honoServer(isHttp2: boolean, { gate, options, handler, before, onError }: Application): Server {
  const app = new Hono<{ Bindings: HttpBindings }>();
  // Hono's own answer to errors, without its log.
  app.onError((error, c) => {
    onError?.(error);
    return 'getResponse' in error ? error.getResponse() : c.text('Internal Server Error', 500);
  });
  app.use(async (c, next) => {
    await before?.(c.env.incoming);
    await next();
  });
  app.use(flowControl(gate, options));
  app.all('/*', async (c) => {
    let response: Response | undefined;
    await handler({
      req: c.env.incoming,
      path: pathOf(c.req.path),
      flow: c.var.flow,
      send(status, body) {
        response = status === 204 ? c.body(null, 204) : c.body(body, status as 200);
      },
      stream() {
        const body = new PassThrough();
        response = c.body(Readable.toWeb(body) as ReadableStream<Uint8Array>, 200, {
          'content-type': 'text/event-stream',
        });
        return body;
      },
    });
    return response!;
  });
  const { fetch } = app;
  return isHttp2 ? createAdaptorServer({ fetch, createServer: http2.createServer }) : createAdaptorServer({ fetch });
}
