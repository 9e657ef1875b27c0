// @ts-check
// A batch that fills what room the gateway tells, and no more: it begins with one request, grows, and is never refused.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { concurrencyDetector, FlowController } from 'headgate';
import { batchDispatcher } from 'headgate/client';
import { flowControl } from 'headgate/node';

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 4 }),
  bands: [{ priority: -10, limits: { maxRequests: 12 } }],
});
const limit = flowControl(flow, { bandHeadroom: true, classify: () => ({ fairnessId: 'batch', priority: -10 }) });
const gateway = createServer((req, res) => limit(req, res, () => setTimeout(() => res.end('served'), 5)));
gateway.listen(0);
await once(gateway, 'listening');
const address = gateway.address();
const url = `http://localhost:${typeof address === 'object' ? address?.port : ''}/v1/completions`;

const batch = batchDispatcher();
let most = 0;
const statuses = await Promise.all(
  Array.from({ length: 100 }, async () => {
    const response = await batch.fetch(url);
    most = Math.max(most, batch.inFlight);
    await response.text();
    return response.status;
  }),
);
assert.ok(statuses.every((status) => status === 200));
assert.equal(flow.stats().rejected, 0);
assert.ok(most > 4, 'the batch never filled the seats');
console.log(
  `100 requests are served and none was refused; up to ${most} were in flight, the last answer told of room for ${batch.headroom}.`,
);
gateway.close();
await flow.close();
