// @ts-check
// Calls that go out: a worker's own traffic to a model server, held back to two at a time, a person's request before
// the nightly batch.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { concurrencyDetector, FlowController } from 'headgate';
import { flowControl } from 'headgate/undici';
import { Agent, fetch, request } from 'undici';

let running = 0;
const modelServer = createServer(async (req, res) => {
  running += 1;
  console.log(`  model server: ${req.url}, ${running} running`);
  await delay(50);
  running -= 1;
  res.end(JSON.stringify({ usage: { completion_tokens: 128 } }));
}).listen(0);
await once(modelServer, 'listening');
const address = modelServer.address();
const url = `http://localhost:${typeof address === 'object' ? address?.port : ''}`;

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
  bands: [{ priority: 100 }, { priority: -10, limits: { maxRequests: 4 } }],
});
const agent = new Agent();
const classify = (/** @type {{ path: string }} */ { path }) => ({
  fairnessId: 'worker',
  priority: path.startsWith('/chat') ? 100 : -10,
});

const dispatcher = agent.compose(flowControl(flow, { classify }));

console.log(
  'Six batch calls, then one for a person, which overtakes those that wait; a seventh batch call does not fit:',
);
const calls = Array.from({ length: 6 }, (_, i) =>
  request(`${url}/batch/${i + 1}`, { dispatcher }).then(({ body }) => body.json()),
);
while (flow.stats().enqueued < 6) await delay(1);
calls.push(fetch(`${url}/chat`, { dispatcher }).then((response) => response.json()));
await request(`${url}/batch/7`, { dispatcher }).catch((error) => {
  console.log(`  ${error.code}, ${error.status}: ${error.message} Retry-After: ${error.headers['retry-after']} s`);
});
await Promise.all(calls);

console.log(
  'With onDrop respond a drop is a response, which clients of model APIs can retry; releaseOn manual leaves time to report usage:',
);
const patient = agent.compose(flowControl(flow, { classify, onDrop: 'respond', releaseOn: 'manual' }));
const { statusCode, body, context } = await request(`${url}/chat`, { dispatcher: patient });
const { usage } = /** @type {{ usage: { completion_tokens: number } }} */ (await body.json());
const { lease } = /** @type {{ flow: import('headgate/undici').RequestFlow }} */ (context).flow;
lease.report({ completionTokens: usage.completion_tokens });
lease.release();
console.log(`  ${statusCode}, ${lease.usage.completionTokens} tokens, ${flow.stats().inFlight} in flight`);

await agent.close();
modelServer.close();
await flow.close();
