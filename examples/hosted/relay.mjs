/**
 * A relay of several keys: one controller, an endpoint for each key, quotas learnt from what the provider answers, and
 * sessions that stay at their key, where their prompts are cached, while it has budget.
 *
 *   node examples/hosted/relay.mjs
 *
 * It starts two simulated providers, which stand for two keys, sends three times what they allow, and prints what they
 * counted.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { affinity, EndpointPool, FlowController, mostBudgetLeft, quotaDetector } from 'headgate';
import { flowFetch } from 'headgate/fetch';
import { createProvider } from './provider.mjs';

/** @param {{ id: string, url: string, apiKey: string }[]} keys */
export function makeRelay(keys) {
  const pool = new EndpointPool();
  for (const { id, url } of keys) pool.add(id, { labels: { url } });
  const apiKeys = new Map(keys.map(({ id, apiKey }) => [id, apiKey]));
  const quotas = quotaDetector();
  // Quotas bound what a key gets, so that no share of the load has to.
  const bySession = affinity({ loadCap: 1000 });
  const byBudget = mostBudgetLeft(quotas);
  const flow = new FlowController({
    pool,
    constraints: [quotas],
    endpointPicker: {
      type: 'session-or-budget',
      pick(endpoints, item, nowMs) {
        const hasSession = 'affinityKey' in item.request && item.request.affinityKey !== undefined;
        return (hasSession ? bySession : byBudget).pick(endpoints, item, nowMs);
      },
    },
  });
  const relayed = flowFetch(flow, {
    retry: { max: 5 }, // how often a request that a key put off goes to another, or waits again
    headersFor: ({ id }) => ({ authorization: `Bearer ${apiKeys.get(id)}` }),
    classify: ({ headers }) => ({
      fairnessId: headers.get('x-tenant') ?? 'nobody',
      priority: headers.get('x-tenant') === 'premium' ? 100 : 0,
      affinityKey: headers.get('x-session') ?? undefined,
    }),
  });
  return { flow, fetch: relayed };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const providers = [12, 8].map((requests) => createProvider({ requests, windowMs: 2000 }));
  const keys = [];
  for (const [index, { server }] of providers.entries()) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    keys.push({ id: `key-${index + 1}`, url: `http://127.0.0.1:${port}`, apiKey: `secret-${index + 1}` });
  }
  const { flow, fetch } = makeRelay(keys);

  const sessions = Array.from({ length: 20 }, (_, i) => `session-${i}`);
  const turns = sessions.map(async (session, i) => {
    const headers = { 'x-tenant': i % 4 === 0 ? 'premium' : `tenant-${i % 4}`, 'x-session': session };
    const body = JSON.stringify({
      model: 'm',
      max_tokens: 16,
      user: session,
      messages: [{ role: 'user', content: 'hello' }],
    });
    for (let turn = 0; turn < 3; turn++) {
      const answer = await fetch('http://relay/v1/chat/completions', { method: 'POST', headers, body });
      const text = await answer.text(); // a body that is read to its end gives the seat back
      assert.equal(answer.status, 200, text);
    }
  });
  await Promise.all(turns);

  const atKeys = sessions.map((session) =>
    providers.map(({ stats }) => stats.order.filter((user) => user === session).length),
  );
  console.log(
    `60 of 60 turns served, ${atKeys.reduce((sum, counts) => sum + Math.max(...counts), 0)} of them at the key of their session`,
  );
  for (const [index, { stats, server }] of providers.entries()) {
    console.log(`${keys[index]?.id}: ${stats.accepted} accepted, ${stats.violations} refused`);
    server.close();
  }
  for (const { group, unit, limit, used } of flow.figures().quotas?.quotas ?? [])
    console.log(`${group}: ${used} of ${limit} ${unit}`);
  await flow.close();
  process.exit(0);
}
