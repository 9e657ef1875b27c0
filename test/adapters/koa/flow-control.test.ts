import http from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowControl, type KoaContext } from '../../../src/adapters/koa/index.js';
import { concurrencyDetector, FlowController } from '../../../src/index.js';
import { rawConnection } from '../../integration/support/clients.js';
import { until } from '../../integration/support/until.js';

function controller(): FlowController {
  return new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
}

async function serve(app: Koa): Promise<number> {
  app.silent = true;
  const server = http.createServer(app.callback());
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

describe('Koa', () => {
  it('gives the lease as ctx.flow and ctx.state.flow', async () => {
    const app = new Koa();
    app.use(flowControl(controller()));
    app.use((ctx) => {
      ctx.body = [ctx.flow === ctx.state.flow, ctx.state.flow.lease.fairnessId];
    });
    expect(await (await fetch(`http://localhost:${await serve(app)}`)).json()).toEqual([true, 'default-flow']);
  });

  it('classifies by the context', async () => {
    const app = new Koa();
    app.use(async (ctx, next) => {
      ctx.state.tenant = 'tenant-a';
      await next();
    });
    type Ctx = KoaContext & { state: { tenant?: string } };
    app.use(flowControl<Ctx>(controller(), { classify: (ctx) => ({ fairnessId: ctx.state.tenant!, priority: 3 }) }));
    app.use((ctx) => {
      const { fairnessId, priority } = ctx.state.flow.lease;
      ctx.body = { fairnessId, priority };
    });
    expect(await (await fetch(`http://localhost:${await serve(app)}`)).json()).toEqual({
      fairnessId: 'tenant-a',
      priority: 3,
    });
  });

  it('middleware around it sees how a drop was answered', async () => {
    const flow = controller();
    await flow.close();
    const seen: number[] = [];
    const app = new Koa();
    app.use(async (ctx, next) => {
      await next();
      seen.push(ctx.status);
    });
    app.use(flowControl(flow, { contract: 'llm-d', body: 'openai' }));
    const response = await fetch(`http://localhost:${await serve(app)}`);
    expect(response.status).toBe(503);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toMatchObject({ error: { code: 'ERR_FLOW_SHUTTING_DOWN' } });
    expect(seen).toEqual([503]);
  });

  it('middleware around it goes on when the client left, and errors are not reported', async () => {
    const flow = controller();
    const seen: number[] = [];
    const errors: unknown[] = [];
    let running = 0;
    const app = new Koa();
    app.on('error', (error) => errors.push(error));
    app.use(async (ctx, next) => {
      await next();
      seen.push(ctx.status);
    });
    app.use(flowControl(flow, { onDrop: 'throw' }));
    app.use(async (ctx) => {
      running += 1;
      await new Promise((resolve) => ctx.state.flow.signal.addEventListener('abort', resolve, { once: true }));
      ctx.body = 'too late';
    });
    const port = await serve(app);
    const [first, second] = [rawConnection(port), rawConnection(port)];
    first.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until('the first runs', () => running === 1);
    second.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until('the second waits', () => flow.stats().waiting === 1);
    second.socket.destroy();
    await until('the second went through the outer middleware', () => seen.length === 1);
    expect(seen).toEqual([503]);
    expect(errors).toEqual([]);
    first.socket.destroy();
    await until('the first is gone', () => flow.stats().inFlight === 0);
    expect(running).toBe(1);
  });
});
