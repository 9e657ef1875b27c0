// @ts-check
// A deploy that loses nothing: what SIGTERM does to a gateway, step by step, while an answer is being streamed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createGateway, lineLog, loadGatewayConfig } from 'headgate/gateway';

/** A model server that ends an answer when it is told to. */
let finish = () => {};
const modelServer = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"choices":[{"text":"Once"}]}\n\n');
  finish = () => response.end('data: [DONE]\n\n');
}).listen(0);
await once(modelServer, 'listening');
const { port } = /** @type {import('node:net').AddressInfo} */ (modelServer.address());

const config = loadGatewayConfig({
  listen: { port: 0 },
  upstreams: [{ id: 'gpu-0', url: `http://localhost:${port}`, metrics: 'none' }],
  plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: 4 } }],
  flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' } },
});
const gateway = await createGateway(config, { log: lineLog('text', () => {}) });
const status = async (/** @type {string} */ path) => (await fetch(gateway.url + path)).status;
const complete = () =>
  fetch(`${gateway.url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'llama', prompt: 'Tell', stream: true }),
  });

const streaming = await complete();
assert.deepEqual([streaming.status, await status('/readyz')], [200, 200]);
const finishFirst = finish;

// The same as SIGTERM with `drain.delay`: load balancers have this long to look elsewhere.
const closed = gateway.close({ delayMs: 1_000 });
assert.deepEqual([await status('/readyz'), await status('/healthz')], [503, 200]);
console.log('After SIGTERM /readyz says 503: no new connections from load balancers. /healthz stays 200: no restart.');

const late = await complete();
assert.equal(late.status, 200);
console.log('A request that came all the same is served.');

finish();
finishFirst();
const texts = await Promise.all([streaming.text(), late.text()]);
for (const text of texts) assert.match(text, /\[DONE\]/);
const { dispatched } = await closed;
assert.equal(dispatched, 2);
console.log('Both answers ended whole, and the gateway is closed.');
modelServer.close();
