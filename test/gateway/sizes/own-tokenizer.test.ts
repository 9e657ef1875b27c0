/** A host on `headgate/node` whose own tokenizer estimates, before servers that count with theirs. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { flowControl, flowOf, type NodeRequest, relay } from '../../../src/adapters/node/index.js';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { concurrencyDetector, FlowController } from '../../../src/index.js';
import { usageReader } from '../../../src/upstream/index.js';
import { dialects, kinds } from '../support/prompts.js';
import { families } from '../support/token-counts.js';
import { promptTokens, startTokenServer } from '../support/token-server.js';

it.each([
  ['chat', 'tiles', 'code'],
  ['responses', 'patches', 'a picture of any kind and size'],
  ['messages', 'anthropic', 'an agent with tools'],
] as const)('books at once what the server reports later: %s, %s, %s', async (dialect, family, kind) => {
  const server = await startTokenServer(families[family]);
  const bodies = new WeakMap<NodeRequest, string>();
  const flow = new FlowController<{ byteSize: number; req: NodeRequest }>({
    saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
    // The host's tokenizer is that of its server.
    estimate: ({ req }) => {
      const inputTokens = promptTokens(families[family], JSON.parse(bodies.get(req) ?? '{}'));
      return { inputTokens, outputTokens: 5 };
    },
  });
  const told: { booked: number; reported: number }[] = [];
  let booked = 0;
  flow.on('dispatched', ({ item }) => (booked = item.estimate?.inputTokens ?? 0));
  flow.on('released', ({ usage }) => told.push({ booked, reported: usage.promptTokens }));
  const limit = flowControl(flow);
  const host = createServer(async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    bodies.set(req, body);
    limit(req, res, () => {
      const { lease, signal } = flowOf(req);
      const usage = usageReader({ lease });
      const headers = { 'content-type': 'application/json' };
      const answer = fetch(server.url + req.url, { method: 'POST', body, headers, signal });
      void relay(answer, req, res, { onChunk: (chunk) => usage.push(chunk) }).then(() => usage.end());
    });
  });
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void host.close());
  const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
  const random = seededRandom(3);
  for (let i = 0; i < 10; i++) {
    const { path, body } = dialects[dialect]('m', kinds[kind]!(random));
    await (await fetch(url + path, { method: 'POST', body: JSON.stringify({ ...body, stream: true }) })).text();
  }
  expect(told).toHaveLength(10);
  for (const each of told) expect(each.reported).toBe(each.booked);
});
