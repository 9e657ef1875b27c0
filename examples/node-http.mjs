// @ts-check
// A reverse proxy on node:http alone: clients are known by their API key, and their flow headers go no further.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { pipeline } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { concurrencyDetector, FlowController, roundRobin } from 'headgate';
import { flowControl } from 'headgate/node';

/** @param {import('node:http').Server} server */
function portOf(server) {
  const address = server.address();
  return typeof address === 'object' ? address?.port : undefined;
}

const modelServer = createServer(async (req, res) => {
  let bytes = 0;
  for await (const chunk of req) bytes += chunk.length;
  await delay(20);
  const control = Object.keys(req.headers).filter((name) => /^x-(gateway|llm-d|slo)/.test(name));
  res.end(`${bytes} bytes, ${control.length} flow headers arrived`);
}).listen(0);

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
  bands: [{ priority: 100 }, { priority: 0, fairness: roundRobin() }],
});

// Keys are looked up by their digests, so that the time that a comparison takes tells nobody how much of a key is
// right.
/** @param {unknown} key */
const digest = (key) => createHash('sha256').update(String(key)).digest('hex');
const keys = new Map([
  [digest('key-a'), { fairnessId: 'tenant-a', priority: 0 }],
  [digest('key-b'), { fairnessId: 'tenant-b', priority: 0 }],
]);

const limit = flowControl(flow, {
  classify(req) {
    const known = keys.get(digest(req.headers['x-api-key']));
    if (known === undefined) throw Object.assign(new Error('unknown API key'), { status: 401 });
    return known;
  },
});

const gateway = createServer((req, res) => {
  limit(req, res, (error) => {
    if (error !== undefined) {
      res.statusCode = /** @type {{ status?: number }} */ (error).status ?? 500;
      res.end(String(error));
      return;
    }
    const { lease, signal } = /** @type {import('headgate/node').WithFlow<typeof req>} */ (req).flow ?? {};
    const upstream = request(
      { port: portOf(modelServer), method: req.method, path: req.url, headers: req.headers, signal },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        pipeline(answer, res, () => {});
      },
    );
    upstream.on('error', () => {
      if (!res.headersSent) res.writeHead(502).end(`no answer for ${lease?.fairnessId}`);
    });
    pipeline(req, upstream, () => {});
  });
});
// A client that asks before it uploads is told to go on when it has its lease.
gateway.on('checkContinue', (req, res) => gateway.emit('request', req, res));
gateway.listen(0);
await Promise.all([once(gateway, 'listening'), once(modelServer, 'listening')]);

/**
 * @param {string} key
 * @param {string} prompt
 */
async function ask(key, prompt) {
  const response = await fetch(`http://localhost:${portOf(gateway)}/v1/completions`, {
    method: 'POST',
    headers: {
      'x-api-key': key,
      'x-gateway-inference-objective': 'premium',
      'x-gateway-inference-fairness-id': 'somebody-else',
    },
    body: prompt,
  });
  const queuedMs = response.headers.get('x-llm-d-flow-queue-duration-ms') ?? 'no';
  console.log(`  ${key}: ${response.status} ${await response.text()} (${queuedMs} ms in the queue)`);
}

console.log('Two tenants share one seat; each claims to be somebody else, which nobody believes:');
flow.on('dispatched', ({ lease }) => console.log(`  dispatched: ${lease.fairnessId}, priority ${lease.priority}`));
await Promise.all([
  ask('key-a', 'x'.repeat(500_000)),
  ask('key-a', 'second'),
  ask('key-b', 'third'),
  ask('key-c', 'stolen'),
]);

for (const server of [gateway, modelServer]) {
  server.close();
  server.closeAllConnections();
}
await flow.close();
