/** Every framework that flow control is tested on. */
import http from 'node:http';
import http2 from 'node:http2';
import type { Server } from 'node:net';
import { PassThrough, type Writable } from 'node:stream';
import express5, { type NextFunction, type Request, type Response } from 'express';
import express4 from 'express4';
import Koa from 'koa';
import { flowControl as expressFlowControl } from '../../../src/adapters/express/index.js';
import { flowControl as koaFlowControl } from '../../../src/adapters/koa/index.js';
import {
  type NodeRequest,
  type NodeResponse,
  flowControl as nodeFlowControl,
  type RequestFlow,
} from '../../../src/adapters/node/index.js';
import { FlowControlError, FlowEvictedError } from '../../../src/index.js';
import { type Application, type Host, type Io, pathOf } from './application.js';
import { fastifyServer } from './fastify-host.js';
import { honoServer } from './hono-host.js';

type Next = (error?: unknown) => void;

function nodeListener({ gate, options, handler, before, onError }: Application) {
  const limit = nodeFlowControl(gate, options);
  return async (req: NodeRequest, res: NodeResponse): Promise<void> => {
    const fail = (error: unknown): void => {
      onError?.(error);
      if (res.headersSent) {
        res.destroy();
        return;
      }
      const known = error instanceof FlowControlError || error instanceof FlowEvictedError ? error : undefined;
      res.statusCode = known?.status ?? 500;
      for (const [name, value] of Object.entries(known?.headers ?? {})) res.setHeader(name, value);
      res.end(known?.message ?? 'Internal Server Error');
    };
    await before?.(req);
    limit(req, res, (error) => {
      if (error === undefined) Promise.resolve(nodeIo(req, res)).then(handler).catch(fail);
      else fail(error);
    });
  };
}

function nodeIo(req: NodeRequest, res: NodeResponse): Io {
  return {
    req,
    path: pathOf(req.url),
    flow: (req as { flow?: RequestFlow }).flow,
    send(status, body) {
      res.statusCode = status;
      res.end(body);
    },
    stream() {
      res.setHeader('content-type', 'text/event-stream');
      return res as unknown as Writable;
    },
  };
}

function expressServer(express: typeof express5, { gate, options, handler, before, onError }: Application): Server {
  const app = express();
  app.set('env', 'test');
  app.use((req: Request, _res: Response, next: NextFunction) => {
    (before?.(req) ?? Promise.resolve()).then(() => next(), next);
  });
  app.use(expressFlowControl(gate, options));
  app.use((req: Request, res: Response, next: NextFunction) => {
    // Express 4 leaves rejected promises to the handler.
    (async () => handler({ ...nodeIo(req, res), send: (status, body) => void res.status(status).send(body) }))().catch(
      next,
    );
  });
  app.use((error: unknown, _req: Request, _res: Response, next: Next) => {
    onError?.(error);
    next(error);
  });
  return http.createServer(app);
}

function koaApp({ gate, options, handler, before, onError }: Application): Koa {
  const app = new Koa();
  app.silent = true;
  app.on('error', (error) => onError?.(error));
  app.use(async (ctx, next) => {
    await before?.(ctx.req);
    await next();
  });
  app.use(koaFlowControl(gate, options));
  app.use(async (ctx) => {
    await handler({
      req: ctx.req,
      path: ctx.path,
      flow: ctx.state.flow,
      send(status, body) {
        ctx.status = status;
        ctx.body = body;
      },
      stream() {
        const body = new PassThrough();
        ctx.type = 'text/event-stream';
        ctx.body = body;
        return body;
      },
    });
  });
  return app;
}

export const hosts: readonly Host[] = [
  { name: 'node:http', protocol: 'http1', create: (application) => http.createServer(nodeListener(application)) },
  { name: 'Express 4', protocol: 'http1', create: (application) => expressServer(express4, application) },
  { name: 'Express 5', protocol: 'http1', create: (application) => expressServer(express5, application) },
  { name: 'Koa 3', protocol: 'http1', create: (application) => http.createServer(koaApp(application).callback()) },
  { name: 'Fastify 5', protocol: 'http1', create: (application) => fastifyServer(false, application) },
  { name: 'Hono 4', protocol: 'http1', create: (application) => honoServer(false, application) },
  { name: 'node:http2', protocol: 'http2', create: (application) => http2.createServer(nodeListener(application)) },
  {
    name: 'Koa 3 on node:http2',
    protocol: 'http2',
    create: (application) => http2.createServer(koaApp(application).callback()),
  },
  { name: 'Fastify 5 on node:http2', protocol: 'http2', create: (application) => fastifyServer(true, application) },
  { name: 'Hono 4 on node:http2', protocol: 'http2', create: (application) => honoServer(true, application) },
];

/**
 * Reads a body to its end, and rejects when the client aborts the upload; HTTP/2 may tell an aborted one as if it were
 * complete.
 */
export function readBody(req: NodeRequest): Promise<number> {
  let bytes = 0;
  return new Promise((resolve, reject) => {
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    req.on('end', () => resolve(bytes)).on('error', reject);
  });
}
