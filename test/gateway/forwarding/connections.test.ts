import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import * as undici from 'undici';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { makeAgent } from '../../../src/gateway/forwarding/connections.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A server that answers when it is told to, and counts the connections that it gets and has. */
async function heldServer() {
  const held: ServerResponse[] = [];
  const count = { made: 0, open: 0 };
  const server = createServer((_, res) => void held.push(res));
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket) => {
    count.made++;
    count.open++;
    socket.on('close', () => count.open--);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4096, resolve));
  ends.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  const answerAll = (): void => {
    for (const res of held.splice(0)) res.end('done');
  };
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, held, count, answerAll };
}

function agentFor(connectMs = 1_000): undici.Agent {
  const agent = makeAgent(undici, connectMs);
  ends.unshift(() => agent.destroy());
  return agent;
}

const ask = async (agent: undici.Agent, origin: string): Promise<string> => {
  const { body } = await agent.request({ origin, path: '/', method: 'GET' });
  return body.text();
};

describe('connections to a server', () => {
  it('are as many as there are requests at a time, and are used again', async () => {
    const { origin, held, count, answerAll } = await heldServer();
    const agent = agentFor();
    for (let round = 0; round < 3; round++) {
      const answers = Promise.all(Array.from({ length: 20 }, () => ask(agent, origin)));
      await vi.waitFor(() => expect(held).toHaveLength(20));
      answerAll();
      expect(new Set(await answers)).toEqual(new Set(['done']));
      // undici uses a connection again only in the next turn of the event loop.
      await turn();
    }
    expect(count.made).toBe(20);
  });

  it('of a peak are closed, but for some', async () => {
    const { origin, held, count, answerAll } = await heldServer();
    const agent = agentFor();
    const answers = Promise.all(Array.from({ length: 300 }, () => ask(agent, origin)));
    await vi.waitFor(() => expect(held).toHaveLength(300));
    answerAll();
    await answers;
    await vi.waitFor(() => expect(count.open).toBeLessThanOrEqual(60));
    expect(count.open).toBeGreaterThan(10);
  });

  it('that cannot be made fail the request, and the next one tries again', async () => {
    const { origin, held, answerAll } = await heldServer();
    const agent = agentFor();
    await expect(ask(agent, 'http://127.0.0.1:1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(ask(agent, 'http://127.0.0.1:1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    const answer = ask(agent, origin);
    await vi.waitFor(() => expect(held).toHaveLength(1));
    answerAll();
    expect(await answer).toBe('done');
  });

  it('whose request was given up are not used for another one', async () => {
    const { origin, held, answerAll } = await heldServer();
    const agent = agentFor();
    const leaving = new AbortController();
    const left = agent.request({ origin, path: '/', method: 'GET', signal: leaving.signal });
    await vi.waitFor(() => expect(held).toHaveLength(1));
    leaving.abort();
    await expect(left).rejects.toMatchObject({ name: 'AbortError' });
    const answer = ask(agent, origin);
    await vi.waitFor(() => expect(held).toHaveLength(2));
    answerAll();
    expect(await answer).toBe('done');
  });

  it('end their exchanges before they close', async () => {
    const { origin, held, count, answerAll } = await heldServer();
    const agent = agentFor();
    const answer = ask(agent, origin);
    await vi.waitFor(() => expect(held).toHaveLength(1));
    const closed = agent.close();
    answerAll();
    expect(await answer).toBe('done');
    await closed;
    await vi.waitFor(() => expect(count.open).toBe(0));
  });
});
