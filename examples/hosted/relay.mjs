/**
 * A relay of several keys: one controller, an endpoint for each key, quotas learnt from what the provider answers.
 *
 *   node examples/hosted/relay.mjs
 *
 * It starts two simulated providers, which stand for two keys, sends three times what they allow, and prints what they counted.
 */
import { once } from 'node:events';
import { EndpointPool, FlowController, mostBudgetLeft, quotaDetector } from 'headgate';
import { createProvider } from './provider.mjs';

/** How often a request that a key put off is sent again at most. */
const mostAttempts = 5;

/**
 * Sends one request by the key that has most left; the answer of the provider, or a refusal with the time to come back.
 *
 * @param {FlowController} flow @param {string} body @param {import('headgate').FlowKey} key
 */
export async function relay(flow, body, key) {
  let outcome = await flow.enqueue({ byteSize: body.length, ...estimate(body) }, key);
  for (let attempt = 1; outcome.type === 'Dispatched'; attempt++) {
    const { lease } = outcome;
    try {
      const { url, apiKey } = lease.endpoint?.labels ?? {};
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` };
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
      lease.answered(response);
      if (lease.isPutOff && attempt < mostAttempts) {
        await response.body?.cancel();
        outcome = await lease.requeue();
        continue;
      }
      const answer = /** @type {{ usage?: { prompt_tokens: number, completion_tokens: number } }} */ (await response.json());
      const { usage } = answer;
      if (usage?.prompt_tokens !== undefined)
        lease.report({ promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens });
      return { status: response.status, answer };
    } finally {
      lease.release();
    }
  }
  return { status: 429, retryAfterMs: outcome.retryAfterMs };
}

/** @param {string} body */
function estimate(body) {
  const { model, max_tokens: maxOutputTokens } = JSON.parse(body);
  return { model, inputTokens: Math.ceil(body.length / 4), maxOutputTokens };
}

/** @param {{ id: string, url: string, apiKey: string }[]} keys */
export function makeRelay(keys) {
  const pool = new EndpointPool();
  for (const { id, url, apiKey } of keys) pool.add(id, { labels: { url, apiKey } });
  const detector = quotaDetector();
  return new FlowController({ pool, saturationDetector: detector, endpointPicker: mostBudgetLeft(detector) });
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
  const flow = makeRelay(keys);
  const body = JSON.stringify({ model: 'm', max_tokens: 16, messages: [{ role: 'user', content: 'hello' }] });
  const tenants = Array.from({ length: 60 }, (_, i) => ({ fairnessId: `tenant-${i % 3}`, priority: i % 3 === 0 ? 100 : 0 }));
  const answers = await Promise.all(tenants.map((key) => relay(flow, body, key)));
  console.log(`${answers.filter(({ status }) => status === 200).length} of ${answers.length} served`);
  for (const [index, { stats, server }] of providers.entries()) {
    console.log(`${keys[index]?.id}: ${stats.accepted} accepted, ${stats.violations} refused`);
    server.close();
  }
  for (const { group, unit, limit, used } of flow.figures().quotas?.quotas ?? []) console.log(`${group}: ${used} of ${limit} ${unit}`);
  await flow.close();
}
