import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import type { PlacementHints } from '../../../src/adapters/http/index.js';
import {
  type FlowControlOptions,
  flowControl,
  type NodeRequest,
  type WithFlow,
} from '../../../src/adapters/node/index.js';
import { affinity, EndpointPool, FlowController, type FlowRequest, subsetHint } from '../../../src/index.js';

const subset = 'x-gateway-destination-endpoint-subset';

/** A server that answers with the endpoint of each request, or the status of its drop. */
async function serve(
  options: FlowControlOptions<NodeRequest>,
): Promise<(headers?: Record<string, string>) => Promise<string>> {
  const pool = new EndpointPool();
  for (const id of ['10.0.0.1:8000', '10.0.0.2:8000', '10.0.0.3:8000']) pool.add(id);
  const endpointPicker = affinity<FlowRequest & PlacementHints>();
  const flow = new FlowController({
    pool,
    endpointPicker,
    endpointFilters: [subsetHint()],
    saturationDetector: () => 0,
  });
  const limit = flowControl(flow, options);
  const server = http.createServer((req, res) => {
    limit(req, res, () => {
      expect(req.headers[subset]).toBeUndefined();
      res.end((req as WithFlow<NodeRequest>).flow?.lease.endpoint?.id);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await flow.close();
  });
  const { port } = server.address() as AddressInfo;
  return async (headers = {}) => {
    const response = await fetch(`http://localhost:${port}/`, { headers });
    const body = await response.text();
    return response.ok ? body : String(response.status);
  };
}

it('sends requests where a trusted proxy allows, and rejects those that it allows nowhere', async () => {
  const ask = await serve({ trust: true });
  expect(await ask({ [subset]: '10.0.0.3:8000' })).toBe('10.0.0.3:8000');
  expect(await ask({ [subset]: '10.0.0.9:8000' })).toBe('503');
  expect(await ask({ [subset]: '' })).toBe('503');
  expect(await ask()).toMatch(/^10\.0\.0\.[123]:8000$/);
});

it('does not believe a client', async () => {
  const ask = await serve({});
  const answers = new Set([
    await ask({ [subset]: '10.0.0.9' }),
    await ask({ [subset]: '10.0.0.9' }),
    await ask({ [subset]: '10.0.0.9' }),
  ]);
  expect([...answers].sort()).toEqual(['10.0.0.1:8000', '10.0.0.2:8000', '10.0.0.3:8000']);
});

it('takes subset and affinity key from classify', async () => {
  const ask = await serve({
    classify: ({ headers }) => ({
      fairnessId: 'a',
      affinityKey: headers['x-session']?.toString(),
      endpointSubset: headers['x-only'] === undefined ? undefined : ['10.0.0.2'],
    }),
  });
  const homes = new Set<string>();
  for (let i = 0; i < 4; i++) homes.add(await ask({ 'x-session': 'one' }));
  expect(homes.size).toBe(1);
  expect(await ask({ 'x-only': 'yes' })).toBe('10.0.0.2:8000');
});
