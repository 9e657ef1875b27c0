/** Hono on Node, with @hono/node-server. */

import type { AddressInfo, Server } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { flowControl } from '../../../src/adapters/hono/index.js';
import { inFlightEviction } from '../../../src/core/eviction.js';
import { countingGate } from '../../integration/support/counting-gate.js';
import { until } from '../../integration/support/until.js';

async function serve(app: Hono): Promise<string> {
  const server = createAdaptorServer({ fetch: app.fetch }) as Server & { closeAllConnections(): void };
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://localhost:${(server.address() as AddressInfo).port}`;
}

describe('Hono on Node', () => {
  it('leaves the body to the handler, also when it waited', async () => {
    const app = new Hono();
    app.use(flowControl(countingGate(1)));
    app.post('/', async (c) => c.json({ length: (await c.req.json()).prompt.length }));
    const url = await serve(app);
    const body = JSON.stringify({ prompt: 'x'.repeat(500_000) });
    const answers = Array.from({ length: 4 }, async () => (await fetch(url, { method: 'POST', body })).json());
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 4 }, () => ({ length: 500_000 })));
  });

  it('classifies by the context, and policies find the web request', async () => {
    const gate = countingGate(1);
    const urls: string[] = [];
    const app = new Hono<{ Variables: { tenant: string } }>();
    app.use(async (c, next) => {
      c.set('tenant', 'tenant-a');
      await next();
    });
    const recording = {
      enqueue: gate.enqueue,
      enter(request: { req: unknown; byteSize: number }, key: { fairnessId: string }) {
        urls.push((request.req as Request).url);
        return gate.enter!(request, key);
      },
    };
    app.use('/v1/*', flowControl(recording, { classify: (c) => ({ fairnessId: c.get('tenant'), priority: 3 }) }));
    app.get('/*', (c) => c.json([c.var.flow?.lease.fairnessId ?? 'free', c.get('flow')?.lease.priority ?? 'free']));
    const url = await serve(app as unknown as Hono);
    expect(await (await fetch(`${url}/v1/models`)).json()).toEqual(['tenant-a', 3]);
    expect(await (await fetch(`${url}/free`)).json()).toEqual(['free', 'free']);
    expect(urls).toEqual([`${url}/v1/models`]);
  });

  it('takes the flow headers off the web request too, though somebody read headers before', async () => {
    const app = new Hono();
    app.use(async (c, next) => {
      c.req.header('authorization');
      await next();
    });
    app.use(flowControl(countingGate(1)));
    app.get('/', (c) => c.json(Object.keys(c.req.header()).filter((name) => /gateway|slo/.test(name))));
    const headers = { 'x-gateway-inference-fairness-id': 'a', 'x-slo-ttft-ms': '5', authorization: 'me' };
    expect(await (await fetch(await serve(app), { headers })).json()).toEqual([]);
  });

  it('sends its header with responses of any kind', async () => {
    const app = new Hono();
    app.use(flowControl(countingGate(1)));
    app.get('/text', (c) => c.text('text'));
    app.get('/raw', () => new Response('raw', { headers: { 'x-mine': 'kept' } }));
    const url = await serve(app);
    for (const name of ['text', 'raw', 'missing']) {
      expect((await fetch(`${url}/${name}`)).headers.get('x-llm-d-flow-queue-duration-ms')).toBe('0');
    }
  });

  it('an evicted handler that answers too late does no harm', async () => {
    const log = vi.spyOn(console, 'error');
    const gate = countingGate(1, { eviction: inFlightEviction() });
    let finish: ((response: Response) => void) | undefined;
    const app = new Hono();
    app.use(flowControl(gate, { trust: true, objectives: { premium: 100, batch: -10 } }));
    app.get(
      '/batch',
      () =>
        new Promise<Response>((resolve) => {
          finish = resolve;
        }),
    );
    app.get('/premium', (c) => c.text('premium'));
    const url = await serve(app);
    const batch = fetch(`${url}/batch`, { headers: { 'x-gateway-inference-objective': 'batch' } });
    await until('batch runs', () => finish !== undefined);
    const premium = await fetch(`${url}/premium`, { headers: { 'x-gateway-inference-objective': 'premium' } });
    expect((await batch).status).toBe(429);
    expect(await (await batch).json()).toMatchObject({ code: 'ERR_FLOW_EVICTED' });
    expect(await premium.text()).toBe('premium');
    finish!(new Response('late'));
    expect(await (await fetch(`${url}/premium`)).text()).toBe('premium');
    expect(log).not.toHaveBeenCalled();
  });
});
