// @ts-check
// Dynamo's request rejection: two workers report their load, all busy means 503 at once, and an operator moves the
// thresholds while it runs.
import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { busyThresholdDetector, EndpointPool, FlowController, refuseWhenAllBusy } from 'headgate';
import { busyThresholdHandler } from 'headgate/http';
import { flowControl } from 'headgate/node';

const detector = busyThresholdDetector({ activeDecodeBlocksThreshold: 0.85, activePrefillTokensThreshold: 10_000 });

const pool = new EndpointPool();
for (const worker of ['worker-0', 'worker-1']) pool.add(worker);

const flow = new FlowController({
  pool,
  saturationDetector: detector,
  mode: 'admission', // nothing waits, as in Dynamo; without these two options, requests would wait for a worker
  admission: refuseWhenAllBusy(),
});

const limit = flowControl(flow, {
  contract: 'dynamo',
  classify: () => ({ fairnessId: 'default', priority: 0 }),
  random: () => 0, // no jitter in Retry-After, so that every run prints the same
});
// Digests have one length, and are compared in constant time: how long it takes tells nobody how much of a token is
// right.
/** @param {unknown} token */
const digest = (token) => createHash('sha256').update(String(token)).digest();
const busyThreshold = busyThresholdHandler({
  models: { llama: detector },
  authorize: ({ headers }) => timingSafeEqual(digest(Reflect.get(headers, 'authorization')), digest('Bearer operator')),
});

const frontend = createServer(async (req, res) => {
  if (req.url === '/busy_threshold') {
    const answer = await busyThreshold({ method: req.method ?? 'GET', headers: req.headers, body: await text(req) });
    res.writeHead(answer.status, answer.headers).end(answer.body);
    return;
  }
  limit(req, res, () => {
    const { lease } = /** @type {import('headgate/node').WithFlow<typeof req>} */ (req).flow ?? {};
    res.end(`served by ${lease?.endpoint?.id}`);
  });
}).listen(0);
await once(frontend, 'listening');
const address = frontend.address();
const url = `http://localhost:${typeof address === 'object' ? address?.port : ''}`;

/** @param {string} worker @param {import('headgate/types').RankLoad[]} ranks */
function report(worker, ...ranks) {
  pool.report(worker, { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, ranks });
}

/** @param {string} when */
async function burst(when) {
  const responses = await Promise.all(
    Array.from({ length: 6 }, () => fetch(`${url}/v1/chat/completions`, { method: 'POST' })),
  );
  const answers = await Promise.all(responses.map(async (response) => `${response.status} ${await response.text()}`));
  console.log(
    `${when}; busy: ${
      pool.endpoints
        .filter((worker) => detector.isBusy(worker))
        .map(({ id }) => id)
        .join(', ') || 'none'
    }`,
  );
  for (const answer of [...new Set(answers)].sort())
    console.log(`  ${answers.filter((other) => other === answer).length} × ${answer}`);
  const retryAfter = responses.find(({ status }) => status === 503)?.headers.get('retry-after');
  if (retryAfter !== undefined) console.log(`  Retry-After: ${retryAfter}`);
}

/** @param {object} [update] @param {Record<string, string>} [headers] */
async function thresholds(update, headers = { authorization: 'Bearer operator' }) {
  const request = update && { method: 'POST', body: JSON.stringify({ model: 'llama', ...update }) };
  const response = await fetch(`${url}/busy_threshold`, {
    ...request,
    headers: { 'content-type': 'application/json', ...headers },
  });
  console.log(`${update === undefined ? 'GET' : 'POST'} /busy_threshold: ${response.status} ${await response.text()}`);
}

report('worker-0', { activeDecodeBlocks: 87, totalBlocks: 100, activePrefillTokens: 0 });
report('worker-1', { activeDecodeBlocks: 95, totalBlocks: 100 }, { activeDecodeBlocks: 40, totalBlocks: 100 });
await burst('Worker 0 uses 87 % of its blocks, one of two ranks of worker 1 is free');

report('worker-1', {}, { activePrefillTokens: 12_000 });
await burst('The other rank of worker 1 prefills 12,000 tokens');

await thresholds({ active_decode_blocks_threshold: 0.95 }, {});
await thresholds({ active_decode_blocks_threshold: 1.5 });
await thresholds({ active_decode_blocks_threshold: 0.95 });
await burst('At 0.95');

report('worker-0', { activeDecodeBlocks: 99 });
report('worker-1', { activeDecodeBlocks: 99 });
await burst('Load rises');
await thresholds();

frontend.close();
frontend.closeAllConnections();
await flow.close();
