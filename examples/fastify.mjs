// @ts-check
// Fastify with two tenants: the one that sends a burst waits behind itself, and the other is served in turn.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import fastify from 'fastify';
import { concurrencyDetector, FlowController, roundRobin } from 'headgate';
import { flowControl } from 'headgate/fastify';

// Keys are secrets, fairness IDs are names: they show in metrics and logs. Keys are looked up by their digests, so that
// the time that a comparison takes tells nobody how much of a key is right.
const digest = (key = '') => createHash('sha256').update(key).digest('hex');
/** @type {Map<string, string>} */
const tenants = new Map([
  [digest('Bearer key-of-batch'), 'batch'],
  [digest('Bearer key-of-chat'), 'chat'],
]);
const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
  bands: [{ priority: 0, fairness: roundRobin() }],
});

const app = fastify();
app.get('/health', async () => ({ waiting: flow.stats().waiting })); // outside: needs no lease

app.register((v1, _options, done) => {
  v1.register(
    flowControl(flow, {
      classify: (request) => ({
        fairnessId: tenants.get(digest(request.headers.authorization)) ?? 'anonymous',
        priority: 0,
      }),
      body: 'openai',
    }),
  );
  v1.post('/v1/completions', async (request) => {
    await delay(50, undefined, { signal: request.flow?.signal });
    const { prompt } = /** @type {{ prompt: string }} */ (request.body);
    return { text: `answer to ${prompt}`, queuedMs: request.flow?.queuedMs };
  });
  done();
});

const url = await app.listen({ port: 0 });

/**
 * @param {string} tenant
 * @param {number} i
 */
async function complete(tenant, i) {
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer key-of-${tenant}` },
    body: JSON.stringify({ prompt: `${tenant} ${i}` }),
  });
  const { text, queuedMs } = /** @type {any} */ (await response.json());
  console.log(`  ${text}, after ${Math.round(queuedMs)} ms in the queue`);
}

console.log('One seat. Batch sends six requests at once, chat two a moment later:');
const all = Array.from({ length: 6 }, (_, i) => complete('batch', i + 1));
while (flow.stats().enqueued < 6) await delay(1);
all.push(complete('chat', 1), complete('chat', 2));
while (flow.stats().enqueued < 8) await delay(1);
console.log(`  meanwhile ${(await app.inject('/health')).body}`);
await Promise.all(all);

app.server.closeAllConnections();
await app.close();
await flow.close();
