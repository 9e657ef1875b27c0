import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Fetch, type RetryOptions, retrying } from '../../src/client/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { deferred, until } from '../integration/support/until.js';

interface Server {
  readonly url: string;
  readonly send: Fetch;
  readonly clock: ManualClock;
  /** What arrived, one text for each request. */
  readonly bodies: string[];
  connections: number;
  /** Responses whose body was read to its end. */
  read: number;
}

async function serve(
  listener: (...args: [...Parameters<RequestListener>, attempt: number]) => void,
  options?: RetryOptions,
): Promise<Server> {
  const clock = new ManualClock();
  const bodies: string[] = [];
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    bodies.push(body);
    listener(req, res, bodies.length - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const send = retrying(fetchCounted, { clock, random: () => 0, ...options });
  const served: Server = { url: `http://127.0.0.1:${port}`, send, clock, bodies, connections: 0, read: 0 };
  async function fetchCounted(...call: Parameters<Fetch>): Promise<Response> {
    const response = await fetch(...call);
    const counted = response.body?.pipeThrough(new TransformStream({ flush: () => void served.read++ }));
    return new Response(counted, response);
  }
  server.on('connection', () => served.connections++);
  return served;
}

/** Lets the pause of one retry pass. */
async function nextAttempt({ clock }: Server, ms = 1000): Promise<void> {
  await until('the client waits', () => clock.pendingTimers === 1);
  clock.advance(ms);
}

describe('a retrying fetch over real connections', () => {
  it('makes all attempts over one connection, also when refusals come in pieces', async () => {
    const server = await serve((_req, res, attempt) => {
      if (attempt === 3) {
        res.end('served');
        return;
      }
      res.writeHead(503, { 'retry-after': '1' });
      res.write('{"error":');
      setTimeout(() => res.end('"busy"}'), 5);
    });
    const response = server.send(server.url, { method: 'POST', body: 'prompt' });
    for (let attempt = 0; attempt < 3; attempt++) {
      await until('refused', () => server.bodies.length === attempt + 1);
      await until('the client waits', () => server.clock.pendingTimers === 1);
      await until('the rest of the refusal was read', () => server.read === attempt + 1);
      server.clock.advance(1000);
    }
    expect(await (await response).text()).toBe('served');
    expect(server.bodies).toEqual(['prompt', 'prompt', 'prompt', 'prompt']);
    expect(server.connections).toBe(1);
  });

  it('waits for the date that a server names', async () => {
    const server = await serve((_req, res, attempt) => {
      if (attempt === 1) {
        res.end('served');
        return;
      }
      const atMs = Date.UTC(2026, 10, 21, 10, 0, 0);
      res.writeHead(429, { date: new Date(atMs).toUTCString(), 'retry-after': new Date(atMs + 7000).toUTCString() });
      res.end();
    });
    const response = server.send(server.url);
    await nextAttempt(server, 6999);
    expect(server.clock.pendingTimers).toBe(1);
    server.clock.advance(1);
    expect(await (await response).text()).toBe('served');
  });

  it('sends nothing again once a byte of the answer has arrived', async () => {
    const arrived = deferred();
    const server = await serve((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: first\n\n');
      void arrived.promise.then(() => res.destroy());
    });
    const response = await server.send(server.url, { method: 'POST', body: 'prompt' });
    arrived.resolve();
    await expect(response.text()).rejects.toThrow();
    expect([server.bodies.length, server.clock.pendingTimers]).toEqual([1, 0]);
  });

  it('sends a stream once', async () => {
    const server = await serve((_req, res) => res.writeHead(503, { 'retry-after': '1' }).end('busy'));
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('audio'));
        controller.close();
      },
    });
    const response = await server.send(server.url, { method: 'POST', body, duplex: 'half' } as RequestInit);
    expect([response.status, await response.text()]).toEqual([503, 'busy']);
    expect(server.bodies).toEqual(['audio']);
  });

  it('sends the body of a Request with every attempt', async () => {
    const server = await serve((_req, res, attempt) =>
      res.writeHead(attempt < 2 ? 429 : 200, { 'retry-after': '1' }).end('answer'),
    );
    const response = server.send(new Request(server.url, { method: 'POST', body: 'prompt' }));
    await nextAttempt(server);
    await until('refused again', () => server.bodies.length === 2);
    await nextAttempt(server);
    expect((await response).status).toBe(200);
    expect(server.bodies).toEqual(['prompt', 'prompt', 'prompt']);
  });

  it('stops waiting when its signal times out', async () => {
    const server = await serve((_req, res) => res.writeHead(503, { 'retry-after': '1' }).end());
    const timeout = new AbortController();
    const ended = expect(server.send(server.url, { signal: timeout.signal })).rejects.toHaveProperty(
      'name',
      'TimeoutError',
    );
    await until('the client waits', () => server.clock.pendingTimers === 1);
    timeout.abort(new DOMException('The time is up', 'TimeoutError'));
    await ended;
    expect([server.bodies.length, server.clock.pendingTimers]).toEqual([1, 0]);
  });
});
