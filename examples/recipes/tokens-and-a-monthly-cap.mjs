// @ts-check
// What plans buy of a gateway: tokens per minute, and a cap of money per month. Who has no tokens left waits, and delays
// nobody; who has no money left is told at once when there will be some.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createGateway, lineLog, loadGatewayConfig } from 'headgate/gateway';
import { parse } from 'yaml';

const file = `
auth:
  keys:
    - { key: key-of-acme, tenant: acme, plan: team }
    - { key: key-of-hobby, tenant: hobby, plan: trial }
budgets:
  plans:
    team: [{ tokens: 6k, per: minute }, { cost: 0.1, per: month }]
    trial: [{ tokens: 2k, per: minute }, { cost: 0.02, per: month }]
  prices:
    llama-*: { input: 3, output: 15 } # a million tokens
    "*": { input: 10, output: 30 }
  headers: true # x-ratelimit-remaining-tokens, …
flowControl:
  defaultRequestTTL: 10s # waits no longer
`;

/** A model server whose answers are as long as they may be. */
const modelServer = createServer(async (request, response) => {
  const { max_tokens: completion_tokens } = /** @type {{ max_tokens: number }} */ (await json(request));
  const usage = { prompt_tokens: 5, completion_tokens, total_tokens: 5 + completion_tokens };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ object: 'text_completion', choices: [{ text: 'Once' }], usage }));
}).listen(0);
await once(modelServer, 'listening');
const { port } = /** @type {import('node:net').AddressInfo} */ (modelServer.address());

const config = loadGatewayConfig({
  ...parse(file),
  listen: { port: 0 },
  upstreams: [{ id: 'gpu-0', url: `http://localhost:${port}`, metrics: 'none' }],
});
const gateway = await createGateway(config, { log: lineLog('text', () => {}) });

/** @param {string} tenant @param {string} path @param {object} [body] */
async function ask(tenant, path, body) {
  const headers = { authorization: `Bearer key-of-${tenant}`, 'content-type': 'application/json' };
  const init = body && { method: 'POST', body: JSON.stringify(body) };
  const beganAtMs = performance.now();
  const response = await fetch(gateway.url + path, { headers, ...init });
  /** @type {any} */
  const answer = await response.json();
  return { status: response.status, headers: response.headers, answer, ms: performance.now() - beganAtMs };
}
/** @param {string} tenant @param {number} max_tokens */
const complete = (tenant, max_tokens) =>
  ask(tenant, '/v1/completions', { model: 'llama-8b', prompt: 'Tell me a story.', max_tokens });

const beganAtMs = performance.now();
const first = await complete('acme', 5_000);
assert.equal(first.status, 200);
console.log(`acme had 5000 tokens; ${first.headers.get('x-ratelimit-remaining-tokens')} are left of this minute's.`);

// 100 tokens come back in a second, so that 1200 are there two seconds after the first request at the earliest.
let isServed = false;
const waiting = complete('acme', 1_200).finally(() => (isServed = true));
const other = await complete('hobby', 200);
assert.deepEqual([other.status, isServed], [200, false]);
const second = await waiting;
assert.equal(second.status, 200);
assert.ok(performance.now() - beganAtMs > 1_900);
console.log(`acme asked for 1200 more, and waited ${(second.ms / 1_000).toFixed(1)} s for them.`);
console.log(`hobby asked meanwhile, and had its answer in ${other.ms.toFixed()} ms.`);

const third = await complete('acme', 1_000);
const { code, message, resets_at } = third.answer.error;
assert.deepEqual([third.status, code], [429, 'ERR_FLOW_BUDGET']);
assert.ok(third.ms < 1_000);
const now = new Date();
assert.ok(Math.abs(resets_at - Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) / 1_000) < 5);
console.log(
  `acme's third request would cost more than is left of the month, and was told so in ${third.ms.toFixed()} ms:`,
);
console.log(`  ${third.status} ${code}, resets_at ${new Date(resets_at * 1_000).toISOString()}: ${message}`);

for (const tenant of ['acme', 'hobby']) {
  const { answer } = await ask(tenant, '/v1/budget');
  console.log(`GET /v1/budget with the key of ${tenant}:`);
  for (const budget of answer.data) console.log(`  ${JSON.stringify(budget)}`);
  const { left } = answer.data.find((/** @type {{ unit: string }} */ { unit }) => unit === 'cost');
  assert.ok(tenant === 'acme' ? left < 0.01 : left > 0.01);
}
await gateway.close();
modelServer.close();
