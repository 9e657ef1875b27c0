/**
 * The room left in a band, in the responses of adapters that set headers in different ways: on Node's response, and on
 * a web one.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Hono } from 'hono';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowControl as hono } from '../../../src/adapters/hono/index.js';
import { flowControl as node } from '../../../src/adapters/node/index.js';
import { concurrencyDetector, FlowController } from '../../../src/index.js';

const header = 'x-llm-d-flow-band-headroom-requests';

type Ask = () => Promise<Response>;
type Serve = (flow: FlowController, options: { bandHeadroom?: boolean }) => Promise<Ask>;

const throughHono: Serve = async (flow, options) => {
  const app = new Hono();
  app.use(hono(flow, options));
  app.get('/', (c) => c.text('served'));
  return async () => app.fetch(new Request('http://gateway.test/'));
};

const throughNode: Serve = async (flow, options) => {
  const limit = node(flow, options);
  const server = createServer((req, res) => limit(req, res, () => res.end('served')));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  return () =>
    fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { headers: { connection: 'close' } });
};

/** One seat; one request may wait, although its band would take three. */
function controller(): FlowController {
  const bands = [{ priority: 0, limits: { maxRequests: 3 } }];
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    limits: { maxRequests: 1 },
    bands,
  });
  onTestFinished(() => flow.close());
  return flow;
}

describe.each([
  ['node', throughNode],
  ['hono', throughHono],
])('the room left in a band, by the adapter for %s', (_, serve) => {
  it('is told with what was let through and with what was dropped', async () => {
    const flow = controller();
    const ask = await serve(flow, { bandHeadroom: true });
    const served = await ask();
    expect([served.status, served.headers.get(header), await served.text()]).toEqual([200, '3', 'served']);
    expect(flow.tryEnqueue({ byteSize: 0 }, { fairnessId: 'running', priority: 0 })?.type).toBe('Dispatched');
    void flow.enqueue({ byteSize: 0 }, { fairnessId: 'waiting', priority: 0 });
    const dropped = await ask();
    expect([dropped.status, dropped.headers.get(header)]).toEqual([429, '2']);
  });

  it('is told to nobody unless asked for, nor where the band has no limit', async () => {
    const silent = await serve(controller(), {});
    expect((await silent()).headers.has(header)).toBe(false);
    const flow = controller();
    flow.reconfigure({ bands: [{ priority: 0, limits: { maxRequests: Number.POSITIVE_INFINITY } }] });
    const unlimited = await serve(flow, { bandHeadroom: true });
    expect((await unlimited()).headers.has(header)).toBe(false);
  });
});
