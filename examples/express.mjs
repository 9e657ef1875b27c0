// @ts-check
// Express in front of one model server: a premium request overtakes, a full queue says when to come back.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import express from 'express';
import { concurrencyDetector, FlowController } from 'headgate';
import { flowControl } from 'headgate/express';

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
  limits: { maxRequests: 3 },
  bands: [{ priority: 100 }, { priority: 0 }],
});

const app = express();
// This server has no clients but this file, so it may believe their headers.
app.use('/v1', flowControl(flow, { trust: true, objectives: { premium: 100 }, body: 'openai' }));
app.use(express.json());
app.post('/v1/completions', async (req, res) => {
  await delay(200, undefined, { signal: req.flow?.signal });
  res.json({ text: `answer to ${req.body.prompt}` });
});

const server = app.listen(0);
await once(server, 'listening');
const address = server.address();
const url = `http://localhost:${typeof address === 'object' ? address?.port : ''}/v1/completions`;

/**
 * @param {string} prompt
 * @param {string} [objective]
 */
async function complete(prompt, objective = 'standard') {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-gateway-inference-objective': objective },
    body: JSON.stringify({ prompt }),
  });
  const { text, error } = /** @type {any} */ (await response.json());
  const queuedMs = response.headers.get('x-llm-d-flow-queue-duration-ms');
  const advice = error
    ? `: ${error.code}, ${error.message} Retry-After: ${response.headers.get('retry-after')} s`
    : `: ${text}`;
  console.log(`  ${response.status} after ${queuedMs} ms in the queue${advice}`);
}

/** @param {number} requests */
async function untilArrived(requests) {
  while (flow.stats().enqueued < requests) await delay(1);
}

console.log('One seat and three places to wait; the premium request comes last but one, and one too many:');
const all = [complete('standard 1')];
await untilArrived(1);
for (const [i, objective] of ['standard', 'standard', 'premium', 'standard'].entries()) {
  all.push(complete(`${objective} ${i + 2}`, objective));
  await untilArrived(i + 2);
}
await Promise.all(all);

server.close();
server.closeAllConnections();
await flow.close();
