/** The inspector in every host, over real sockets. */
import http from 'node:http';
import http2 from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import express5 from 'express';
import express4 from 'express4';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Engine } from '../../../src/core/engine/engine.js';
import { engineOf } from '../../../src/core/inspect/engine-of.js';
import { type Inspector, inspector } from '../../../src/observability/inspector/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { key, makeFlow, request, runNow } from '../../support/flow.js';

const mount = '/internal/inspector';

const hosts: [string, (page: Inspector) => Server | Promise<Server>][] = [
  ['node:http', (page) => http.createServer((req, res) => void page.node(req, res))],
  ['Express 4', (page) => http.createServer(express4().use(mount, page.node))],
  ['Express 5', (page) => http.createServer(express5().use(mount, page.node))],
  [
    'Koa 3',
    (page) =>
      http.createServer(
        new Koa()
          .use((ctx) => {
            ctx.respond = false;
            return page.node(ctx.req, ctx.res);
          })
          .callback(),
      ),
  ],
  [
    'Fastify 5',
    async (page) => {
      const app = fastify();
      app.get(mount, (req, reply) => {
        reply.hijack();
        return page.node(req.raw, reply.raw);
      });
      await app.ready();
      return app.server;
    },
  ],
  [
    'Hono 4',
    (page) => createAdaptorServer({ fetch: new Hono().get(mount, (c) => page.fetch(c.req.raw)).fetch }) as Server,
  ],
];

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(create: (page: Inspector) => Server | Promise<Server>) {
  const { flow } = makeFlow({ clock: undefined });
  const page = inspector(flow, {
    authorize: ({ headers }) => headerOf(headers, 'x-operator') === 'ann',
    intervalMs: 100,
  });
  const server = await create(page);
  await new Promise<void>((resolve) => server.listen(0, resolve));
  closers.push(
    () => new Promise((resolve) => server.close(resolve)),
    // Clients keep their connections for a while.
    () => (server as Partial<http.Server>).closeAllConnections?.(),
    () => page.close(),
  );
  const url = `http://localhost:${(server.address() as AddressInfo).port}${mount}`;
  runNow(flow);
  return { flow, page, server, url };
}

function headerOf(headers: object, name: string): unknown {
  return headers instanceof Headers ? headers.get(name) : Reflect.get(headers, name);
}

const headers = { 'x-operator': 'ann' };

describe.each(hosts)('%s', (_, create) => {
  it('serves the page, a frame, and 403 to others', async () => {
    const { flow, url } = await start(create);
    void flow.enqueue(request, key('tenant-a'));
    const [page, frame, stranger] = await Promise.all([
      fetch(url, { headers }),
      fetch(`${url}?view=json`, { headers }),
      fetch(`${url}?view=json`),
    ]);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await page.text()).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/);
    expect(await frame.json()).toMatchObject({ waiting: 1, slowest: [{ flow: 'tenant-a' }] });
    expect([stranger.status, await stranger.json()]).toEqual([403, { error: 'not authorized' }]);
    await flow.close();
  });

  it('streams frames, and stops when the page is closed', async () => {
    const { page, url } = await start(create);
    const leaving = new AbortController();
    const response = await fetch(`${url}?view=events`, { headers, signal: leaving.signal });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (text.split('\n\n').length < 4) text += (await reader.read()).value;
    expect(text.split('\n\n')[2]).toMatch(/^data: \{"atMs":/);
    expect(page.watchers).toBe(1);
    leaving.abort();
    await expect.poll(() => page.watchers).toBe(0);
  });
});

describe('a slow reader', () => {
  it('makes the gateway keep no frames for it', async () => {
    const { flow, page, url, server } = await start((page) =>
      http.createServer((req, res) => void page.node(req, res)),
    );
    for (let i = 0; i < 2000; i++) void flow.enqueue({ byteSize: 1 }, key(`${i}-${'x'.repeat(60)}`, i % 40));
    let buffered = 0;
    server.on('connection', (socket) => {
      const timer = setInterval(() => {
        buffered = Math.max(buffered, socket.writableLength);
      }, 10);
      socket.on('close', () => clearInterval(timer));
    });
    const response = await new Promise<http.IncomingMessage>((resolve) =>
      http.get(`${url}?view=events`, { headers }, resolve),
    );
    response.pause();
    await expect.poll(() => page.watchers).toBe(1);
    // Frames come as another reads them.
    const leaving = new AbortController();
    const quick = await fetch(`${url}?view=events`, { headers, signal: leaving.signal });
    const reader = quick.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ''; text.split('\n\n').length < 12; ) text += (await reader.read()).value;
    leaving.abort();
    // What the kernel takes is its own; what waits in the process is one frame at most, and the one being written.
    expect(buffered).toBeLessThan(200_000);
    response.destroy();
    await expect.poll(() => page.watchers).toBe(0);
    await flow.close();
  });
});

describe('node:http2', () => {
  it('serves page and stream', async () => {
    const { url, page } = await start(
      (page) => http2.createServer((req, res) => void page.node(req, res)) as unknown as Server,
    );
    const session = http2.connect(new URL(url).origin);
    closers.push(() => session.close());
    const stream = session.request({ ':path': `${mount}?view=events`, ...headers });
    const first = await new Promise<string>((resolve) => stream.setEncoding('utf8').once('data', resolve));
    expect(first).toMatch(/^data: \{/);
    stream.close();
    await expect.poll(() => page.watchers).toBe(0);
  });
});

describe('a page that cannot be sent', () => {
  async function serve(page: Inspector, handled: (done: Promise<void>) => void): Promise<string> {
    const server = http.createServer((req, res) => handled(page.node(req, res)));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    closers.push(
      () => new Promise((resolve) => server.close(resolve)),
      () => server.closeAllConnections(),
      () => page.close(),
    );
    return `http://localhost:${(server.address() as AddressInfo).port}`;
  }

  it('breaks its stream off, and ends no process, when the controller cannot be looked at any more', async () => {
    const { flow } = makeFlow();
    const clock = new ManualClock();
    const page = inspector(flow, { authorize: () => true, clock, history: false });
    const ends: Promise<void>[] = [];
    const url = await serve(page, (done) => ends.push(done));
    const response = await fetch(`${url}/?view=events`);
    const reader = response.body!.getReader();
    await reader.read();
    vi.spyOn(engineOf(flow) as Engine, 'figures').mockImplementation(() => {
      throw new Error('cannot look');
    });
    clock.advance(500);
    await expect(reader.read()).rejects.toThrow();
    await expect(ends[0]).resolves.toBeUndefined();
    expect(page.watchers).toBe(0);
  });

  it('is answered with 500 when authorize answers one Response twice, whose body can be sent once', async () => {
    const { flow } = makeFlow();
    const login = new Response('log in', { status: 401 });
    const ends: Promise<void>[] = [];
    const url = await serve(inspector(flow, { authorize: () => login }), (done) => ends.push(done));
    expect([(await fetch(url)).status, (await fetch(url)).status]).toEqual([401, 500]);
    await expect(Promise.all(ends)).resolves.toHaveLength(2);
  });
});

describe('what authorize throws', () => {
  it.each([
    ['is answered with 500 where there is nobody to tell', undefined, 500],
    ['goes to next', (error: unknown) => expect(error).toEqual(new Error('no directory')), 418],
  ])('%s', async (_, check, status) => {
    const { flow } = makeFlow();
    const page = inspector(flow, {
      authorize: () => {
        throw new Error('no directory');
      },
    });
    const server = http.createServer((req, res) => {
      const next = (error?: unknown): void => {
        check?.(error);
        res.writeHead(418).end();
      };
      void page.node(req, res, check && next);
    });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    closers.push(() => new Promise((resolve) => server.close(resolve)));
    const response = await fetch(`http://localhost:${(server.address() as AddressInfo).port}/`);
    expect([response.status, await response.text()]).toEqual([status, '']);
  });
});
