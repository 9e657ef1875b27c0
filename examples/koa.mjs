// @ts-check
// Koa and a streamed answer: the seat is held to the end of the stream, and given back at once when the client hangs
// up.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { concurrencyDetector, FlowController } from 'headgate';
import { flowControl } from 'headgate/koa';
import Koa from 'koa';

// Keys are secrets, fairness IDs are names: they show in metrics and logs. Keys are looked up by their digests, so that
// the time that a comparison takes tells nobody how much of a key is right.
const digest = (key = '') => createHash('sha256').update(key).digest('hex');
/** @type {Map<string, string>} */
const tenants = new Map([
  [digest('Bearer key-of-alice'), 'alice'],
  [digest('Bearer key-of-bob'), 'bob'],
  [digest('Bearer key-of-carol'), 'carol'],
  [digest('Bearer key-of-dave'), 'dave'],
]);
const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });

const app = new Koa();
app.use(
  flowControl(flow, {
    classify: (ctx) => ({ fairnessId: tenants.get(digest(ctx.req.headers.authorization)) ?? 'anonymous', priority: 0 }),
  }),
);
app.use((ctx) => {
  ctx.type = 'text/event-stream';
  ctx.body = Readable.from(tokens(ctx.state.flow.signal));
});

/**
 * A model server that says a word every 20 ms, and stops when nobody listens.
 * @param {AbortSignal} signal
 */
async function* tokens(signal) {
  for (const word of ['Hold', 'the', 'request,', 'not', 'the', 'server.']) {
    if (signal.aborted) return;
    yield `data: ${word}\n\n`;
    await delay(20);
  }
}

// Koa reports clients that hang up as errors, which they are not.
app.on('error', (error, ctx) => {
  if (error.code !== 'ECONNRESET' && !ctx.flow?.signal.aborted) console.error(error);
});

const server = createServer(app.callback()).listen(0);
await once(server, 'listening');
const address = server.address();
const url = `http://localhost:${typeof address === 'object' ? address?.port : ''}`;

/**
 * @param {string} name
 * @param {AbortSignal} [signal]
 */
async function read(name, signal = new AbortController().signal) {
  try {
    const response = await fetch(url, { headers: { authorization: `Bearer key-of-${name}` }, signal });
    const text = await response.text();
    const queuedMs = response.headers.get('x-llm-d-flow-queue-duration-ms');
    console.log(
      `  ${name}: ${text
        .replaceAll(/data: |\n/g, ' ')
        .replaceAll(/ +/g, ' ')
        .trim()} (${queuedMs} ms in the queue)`,
    );
  } catch {
    console.log(`  ${name}: hung up`);
  }
}

console.log('One seat. Alice reads a stream, and bob waits for its end; carol hangs up while she waits:');
const carol = new AbortController();
const readers = [read('alice')];
while (flow.stats().enqueued < 1) await delay(1);
readers.push(read('bob'), read('carol', carol.signal));
while (flow.stats().enqueued < 3) await delay(1);
carol.abort();
await Promise.all(readers);

console.log('Dave hangs up in the middle of his stream:');
const dave = new AbortController();
const reader = read('dave', dave.signal);
while (flow.stats().enqueued < 4) await delay(1);
dave.abort();
await reader;
while (flow.stats().inFlight > 0) await delay(1);
const { outcomes, inFlight, waiting } = flow.stats();
console.log(
  `${outcomes.Dispatched} dispatched, ${outcomes.EvictedContextCancelled} left while waiting, ${inFlight} in flight, ${waiting} waiting`,
);

server.close();
server.closeAllConnections();
await flow.close();
