// @ts-check
// Hono, twice: on Node's server, and on nothing but Request and Response, as on edge runtimes. The seat follows the
// stream in both.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { serve } from '@hono/node-server';
import { concurrencyDetector, FlowController } from 'headgate';
import { flowControl } from 'headgate/hono';
import { Hono } from 'hono';
import { stream } from 'hono/streaming';

// Keys are secrets, fairness IDs are names: they show in metrics and logs. Keys are looked up by their digests, so that
// the time that a comparison takes tells nobody how much of a key is right.
const digest = (key = '') => createHash('sha256').update(key).digest('hex');
/** @type {Map<string, string>} */
const tenants = new Map([[digest('Bearer key-a'), 'tenant-a']]);
const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });

const app = new Hono();
app.use(
  '/v1/*',
  flowControl(flow, {
    classify: (c) => ({ fairnessId: tenants.get(digest(c.req.header('authorization'))) ?? 'anonymous', priority: 0 }),
  }),
);
app.get('/v1/words', (c) =>
  stream(c, async (body) => {
    for (const word of ['Hold', 'the', 'request,', 'not', 'the', 'server.']) {
      if (c.var.flow?.signal.aborted) return;
      await body.write(`${word} `);
      await delay(10);
    }
  }),
);

/** @param {string} what */
function report(what) {
  const { inFlight, waiting, outcomes } = flow.stats();
  console.log(
    `  ${what}: ${inFlight} in flight, ${waiting} waiting, ${outcomes.EvictedContextCancelled} left while waiting`,
  );
}

/**
 * Two read, and a third hangs up while it waits; then a fourth hangs up in the middle of its stream.
 * @param {(signal?: AbortSignal) => Promise<Response>} get
 */
async function play(get) {
  const { enqueued } = flow.stats();
  const [first, second] = [get(), get()];
  while (flow.stats().enqueued < enqueued + 2) await delay(1);
  const client = new AbortController();
  const third = get(client.signal).catch(() => {});
  while (flow.stats().enqueued < enqueued + 3) await delay(1);
  client.abort();
  await third;
  while (flow.stats().waiting > 1) await delay(1);
  report('one reads, one waits');
  console.log(`  ${await (await first).text()}`);
  await (await second).text();

  const fourth = await get();
  const reader = fourth.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  while (flow.stats().inFlight > 0) await delay(1);
  report('all gone');
}

console.log('On Node:');
const server = serve({ fetch: app.fetch, port: 0 });
await once(server, 'listening');
const address = server.address();
const url = `http://localhost:${typeof address === 'object' ? address?.port : ''}/v1/words`;
await play((signal) => fetch(url, { signal: signal ?? null }));
server.close();
if ('closeAllConnections' in server) server.closeAllConnections();

console.log('Without Node:');
await play(async (signal) => app.fetch(new Request('http://localhost/v1/words', { signal: signal ?? null })));

await flow.close();
