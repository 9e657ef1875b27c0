/**
 * Streaming an upstream's answer through every host, over real sockets: whoever leaves first, nothing crashes and
 * nothing is left.
 */
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { createAdaptorServer, serve as serveHono } from '@hono/node-server';
import express5 from 'express';
import express4 from 'express4';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { describe, expect, it, onTestFinished } from 'vitest';
import * as ofExpress from '../../src/adapters/express/index.js';
import * as ofFastify from '../../src/adapters/fastify/index.js';
import * as ofHono from '../../src/adapters/hono/index.js';
import type { RelayOptions } from '../../src/adapters/http/relayed-answer.js';
import * as ofKoa from '../../src/adapters/koa/index.js';
import * as ofNode from '../../src/adapters/node/index.js';
import * as ofWeb from '../../src/adapters/web/index.js';
import { concurrencyDetector, FlowController, inFlightEviction } from '../../src/index.js';
import { deferred, until } from './support/until.js';

/** Starts a gateway that relays every request to `upstream`; returns its server. */
type Host = (
  flow: FlowController,
  upstream: string,
  options: RelayOptions,
  control: Control,
) => Promise<Server> | Server;

interface Control {
  readonly body?: 'openai';
}

function expressHost(express: typeof express5): Host {
  return (flow, upstream, options, control) => {
    const app = express();
    app.set('env', 'test');
    app.use(ofExpress.flowControl(flow, control));
    app.get('/', async (req, res) => {
      res.setHeader('x-own', 'yes');
      await ofExpress.relay(fetch(upstream, { signal: req.flow.signal }), req, res, options);
    });
    return app.listen(0);
  };
}

const hosts: Record<string, Host> = {
  'node:http': (flow, upstream, options, control) => {
    const limit = ofNode.flowControl(flow, control);
    return http
      .createServer((req, res) =>
        limit(req, res, () => {
          res.setHeader('x-own', 'yes');
          void ofNode.relay(fetch(upstream, { signal: ofNode.flowOf(req).signal }), req, res, options);
        }),
      )
      .listen(0);
  },
  'Express 4': expressHost(express4 as unknown as typeof express5),
  'Express 5': expressHost(express5),
  Koa: (flow, upstream, options, control) => {
    const app = new Koa();
    // Koa tells of broken connections by itself.
    app.on('error', (error) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') throw error;
    });
    app.use(ofKoa.flowControl(flow, control));
    app.use(async (ctx) => {
      ctx.set('x-own', 'yes');
      await ofKoa.relay(fetch(upstream, { signal: ctx.state.flow.signal }), ctx, options);
    });
    return app.listen(0);
  },
  Fastify: async (flow, upstream, options, control) => {
    const app = fastify();
    app.register(ofFastify.flowControl(flow, control));
    app.get('/', async (request, reply) => {
      reply.header('x-own', 'yes');
      await ofFastify.relay(fetch(upstream, { signal: request.flow.signal }), request, reply, options);
    });
    await app.listen({ port: 0 });
    return app.server;
  },
  Hono: (flow, upstream, options, control) => {
    const app = new Hono();
    app.use(ofHono.flowControl(flow, control));
    app.get('/', (c) => {
      c.header('x-own', 'yes');
      return ofHono.relay(fetch(upstream, { signal: c.var.flow.signal }), c, options);
    });
    return serveHono({ fetch: app.fetch, port: 0 }) as Server;
  },
  'a fetch handler': (flow, upstream, options, control) => {
    const inTurn = ofWeb.flowControl(flow, control);
    const server = createAdaptorServer({
      fetch: (request: Request) =>
        inTurn(request, async (own, { signal }) => {
          const response = await ofWeb.relay(fetch(upstream, { signal }), own, options);
          response.headers.set('x-own', 'yes');
          return response;
        }),
    });
    return server.listen(0) as Server;
  },
};

async function urlOf(server: Server): Promise<string> {
  if (!server.listening) await once(server, 'listening');
  onTestFinished(() => {
    (server as http.Server).closeAllConnections();
    server.close();
  });
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

interface Stage {
  readonly url: string;
  readonly flow: FlowController;
  /** What the relay reported. */
  readonly errors: unknown[];
  readonly chunks: number[];
}

async function stage(
  host: Host,
  model: (req: IncomingMessage, res: ServerResponse) => void,
  control: Control = {},
): Promise<Stage> {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  const errors: unknown[] = [];
  const chunks: number[] = [];
  const upstream = await urlOf(http.createServer(model).listen(0));
  const onError = (error: unknown): void => void errors.push(error);
  const onChunk = (chunk: Uint8Array): void => void chunks.push(chunk.length);
  return { url: await urlOf(await host(flow, upstream, { onError, onChunk }, control)), flow, errors, chunks };
}

/** Nothing runs or waits, and the seat can be had again. */
async function isFree(flow: FlowController): Promise<void> {
  await until('the seat is free', () => flow.stats().inFlight === 0);
}

describe.each(Object.entries(hosts))('relay in %s', (_, host) => {
  it('streams chunk by chunk, with the upstream’s status and headers, and those of the host', async () => {
    let finish = (): void => {};
    const { url, flow, chunks } = await stage(host, (_req, res) => {
      res.writeHead(201, {
        'content-type': 'text/event-stream',
        'x-model': 'a',
        'keep-alive': 'timeout=9',
        'set-cookie': ['a=1', 'b=2'],
      });
      res.write('data: one\n\n');
      finish = () => res.end('data: two\n\n');
    });
    const response = await fetch(url);
    expect(response.status).toBe(201);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'x-model': 'a',
      'x-own': 'yes',
      'x-llm-d-flow-queue-duration-ms': expect.any(String),
    });
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(response.headers.get('keep-alive')).not.toBe('timeout=9');
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe('data: one\n\n');
    expect(flow.stats().inFlight).toBe(1);
    finish();
    expect((await reader.read()).value).toBe('data: two\n\n');
    expect((await reader.read()).done).toBe(true);
    await isFree(flow);
    expect(chunks).toEqual([11, 11]);
  });

  it('a client that leaves in the middle of a stream stops the upstream, and is no error', async () => {
    let isStopped = false;
    const { url, flow, errors } = await stage(host, (_req, res) => {
      res.write('data: one\n\n');
      const ticks = setInterval(() => res.write('data: more\n\n'), 1);
      res.on('close', () => {
        clearInterval(ticks);
        isStopped = true;
      });
    });
    const client = new AbortController();
    const response = await fetch(url, { signal: client.signal });
    await response.body!.getReader().read();
    client.abort();
    await until('the upstream is stopped', () => isStopped);
    await isFree(flow);
    expect(errors).toEqual([]);
    expect((await fetch(url)).status).toBe(200);
  });

  it('a client that leaves before the upstream has answered stops it, and is no error', async () => {
    let asked = 0;
    let stopped = 0;
    const { url, flow, errors } = await stage(host, (_req, res) => {
      asked++;
      res.on('close', () => void stopped++);
    });
    const client = new AbortController();
    const gone = fetch(url, { signal: client.signal }).catch(() => 'gone');
    await until('the upstream is asked', () => asked === 1);
    client.abort();
    expect(await gone).toBe('gone');
    await until('the upstream is stopped', () => stopped === 1);
    await isFree(flow);
    expect(errors).toEqual([]);
  });

  it('an upstream that cannot be reached is told as 502, in the body that flow control has for errors', async () => {
    const error = {
      message: 'No answer from the model server.',
      type: 'server_error',
      param: null,
      code: 'ERR_FLOW_NO_ANSWER',
    };
    const problem = { type: 'about:blank', title: 'Bad Gateway', status: 502, detail: error.message, code: error.code };
    for (const [control, type, body] of [
      [{}, 'application/problem+json', { ...problem, error }],
      [{ body: 'openai' }, 'application/json', { error }],
    ] as const) {
      const { url, flow, errors } = await stage(host, (req) => req.socket.destroy(), control);
      const response = await fetch(url);
      expect([response.status, response.headers.get('cache-control')]).toEqual([502, 'no-store']);
      expect(response.headers.get('content-type')).toContain(type);
      expect(await response.json()).toEqual(body);
      await isFree(flow);
      expect(errors).toEqual([expect.objectContaining({ message: 'fetch failed' })]);
    }
  });

  it('an upstream that breaks off breaks off the response, which nobody can take for the whole', async () => {
    const arrived = deferred();
    const { url, flow, errors } = await stage(host, (_req, res) => {
      res.write('data: one\n\n');
      void arrived.promise.then(() => res.destroy());
    });
    const response = await fetch(url);
    arrived.resolve();
    await expect(response.text()).rejects.toThrow();
    await isFree(flow);
    expect(errors).toHaveLength(1);
  });

  it('a client that does not read holds the upstream back', async () => {
    const chunk = Buffer.alloc(256 * 1024);
    const whole = 400;
    let sent = 0;
    const { url, flow } = await stage(host, (_req, res) => {
      res.on('close', () => {
        sent = Number.NaN;
      });
      const send = (): void => {
        while (sent++ < whole) if (!res.write(chunk)) return;
        res.end();
      };
      res.on('drain', send);
      send();
    });
    const socket = http.get(url);
    socket.on('error', () => {});
    const [response] = (await once(socket, 'response')) as [IncomingMessage];
    response.pause();
    await until('the upstream has begun', () => sent > 2);
    // It stops when the buffers between are full.
    let before = -1;
    let looks = 0;
    await until('the upstream is held back', () => {
      looks = sent === before ? looks + 1 : 0;
      before = sent;
      return looks > 100;
    });
    expect(sent).toBeLessThan(whole / 2);
    response.on('error', () => {}).destroy();
    await isFree(flow);
  });
});

describe('relay in node:http', () => {
  it('leaves the answer to the adapter when the request was evicted', async () => {
    const flow = new FlowController({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      eviction: inFlightEviction(),
      bands: [{ priority: 1 }, { priority: -1 }],
    });
    const limit = ofNode.flowControl(flow, {
      classify: (req) => ({ fairnessId: 'a', priority: Number(req.headers['x-priority']) }),
    });
    let asked = 0;
    const upstream = await urlOf(http.createServer(() => void asked++).listen(0));
    const ends: unknown[] = [];
    const gateway = http.createServer((req, res) =>
      limit(req, res, () => {
        if (ofNode.flowOf(req).lease.priority > 0) res.end('served');
        else
          void ofNode
            .relay(fetch(upstream, { signal: ofNode.flowOf(req).signal }), req, res)
            .then((end) => ends.push(end));
      }),
    );
    const url = await urlOf(gateway.listen(0));
    const evicted = fetch(url, { headers: { 'x-priority': '-1' } });
    await until('the upstream is asked', () => asked === 1);
    const served = await fetch(url, { headers: { 'x-priority': '1' } });
    expect(await served.text()).toBe('served');
    expect((await evicted).status).toBe(429);
    expect(ends).toEqual(['evicted']);
  });

  it('cancels a body that nobody wants any more, also where fetch was not given the signal', async () => {
    const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
    const limit = ofNode.flowControl(flow);
    let isCancelled = false;
    const ends: unknown[] = [];
    const body = new ReadableStream({
      cancel: () => {
        isCancelled = true;
      },
    });
    const gateway = http.createServer((req, res) =>
      limit(req, res, () => void ofNode.relay(new Response(body), req, res).then((end) => ends.push(end))),
    );
    const url = await urlOf(gateway.listen(0));
    const client = new AbortController();
    const response = await fetch(url, { signal: client.signal });
    expect(response.status).toBe(200);
    client.abort();
    await until('the body is cancelled', () => isCancelled);
    await until('the relay is over', () => ends.length === 1);
    expect(ends).toEqual(['client-left']);
  });
});
