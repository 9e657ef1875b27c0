/** The relay of several keys. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createProvider } from '../../examples/hosted/provider.mjs';
import { makeRelay } from '../../examples/hosted/relay.mjs';

async function startRelay(limits: readonly number[]) {
  const providers = limits.map((requests) => createProvider({ requests, input: 1e9, output: 1e9, latencyMs: 0 }));
  const keys: { id: string; url: string; apiKey: string }[] = [];
  const authorizations = new Set<string | undefined>();
  for (const [index, { server }] of providers.entries()) {
    server.on('request', ({ headers }) => authorizations.add(`${index} ${headers.authorization}`));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    keys.push({
      id: `key-${index}`,
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      apiKey: `secret-${index}`,
    });
  }
  const { flow, fetch } = makeRelay(keys);
  onTestFinished(() => void flow.close());
  async function send(session?: string): Promise<number> {
    const headers: Record<string, string> = {
      'x-tenant': 'acme',
      ...(session !== undefined && { 'x-session': session }),
    };
    const body = JSON.stringify({ model: 'm', max_tokens: 1, user: session, messages: [] });
    const answer = await fetch('http://relay/v1/chat/completions', { method: 'POST', headers, body });
    await answer.text();
    return answer.status;
  }
  return { send, orders: providers.map(({ stats }) => stats.order), authorizations };
}

it('sends all turns of a session by one key, each request with the API key of its endpoint', async () => {
  const { send, orders, authorizations } = await startRelay([10_000, 10_000]);
  // The first answer of each key tells its quotas; until then one request goes ahead.
  for (let i = 0; i < 2; i++) expect(await send()).toBe(200);
  expect(orders.map(({ length }) => length)).toEqual([1, 1]);
  const sessions = Array.from({ length: 12 }, (_, i) => `session-${i}`);
  await Promise.all(
    sessions.map(async (session) => {
      for (let turn = 0; turn < 4; turn++) expect(await send(session)).toBe(200);
    }),
  );
  for (const session of sessions)
    expect(orders.map((order) => order.filter((user) => user === session).length).sort()).toEqual([0, 4]);
  for (const order of orders) expect(order.length).toBeGreaterThan(4);
  expect([...authorizations].sort()).toEqual(['0 Bearer secret-0', '1 Bearer secret-1']);
});

it('sends the turns of a session by another key while its own has no budget', async () => {
  const { send, orders } = await startRelay([5, 10_000]);
  for (let i = 0; i < 2; i++) await send();
  for (let i = 0; i < 30; i++) expect(await send(`session-${i}`)).toBe(200);
  expect(orders[0]).toHaveLength(5);
  expect(orders[1]).toHaveLength(27);
});
