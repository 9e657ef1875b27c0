/** What the adapters may cost a request that need not wait, counted. Never wall time: that is `npm run bench -- http`. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowControl as koaFlowControl } from '../../../src/adapters/koa/index.js';
import { flowControl, type NodeRequest, type WithFlow } from '../../../src/adapters/node/index.js';
import { concurrencyDetector, FlowController } from '../../../src/index.js';
import { rawConnection } from '../../integration/support/clients.js';
import { until } from '../../integration/support/until.js';

const controller = (): FlowController =>
  new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
const options = { classify: () => ({ fairnessId: 'a', priority: 0 }) };
const post = 'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi';

async function exchange(listener: http.RequestListener): Promise<string> {
  const server = http.createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, resolve));
  onTestFinished(() => void server.close());
  const { socket, received, isClosed } = rawConnection((server.address() as AddressInfo).port);
  socket.write(post);
  await until('the connection to close', isClosed);
  return received();
}

/** Every listener of the request, the response and their connection. */
function listeners(req: http.IncomingMessage, res: http.ServerResponse): number {
  return [req, res, req.socket].reduce(
    (sum, one) => sum + one.eventNames().reduce((n, name) => n + one.listenerCount(name), 0),
    0,
  );
}

/** How often AbortControllers were made, until the test ends. */
function countAbortControllers(): () => number {
  const Original = globalThis.AbortController;
  let made = 0;
  globalThis.AbortController = class extends Original {
    constructor() {
      super();
      made += 1;
    }
  };
  onTestFinished(() => {
    globalThis.AbortController = Original;
  });
  return () => made;
}

describe('a request that need not wait', () => {
  it('hangs one listener on its exchange', async () => {
    const limit = flowControl(controller(), options);
    let added = 0;
    await exchange((req, res) => {
      const before = listeners(req, res);
      limit(req, res, () => {
        added = listeners(req, res) - before;
        res.end();
      });
    });
    expect(added).toBe(1);
  });

  it('makes an AbortController only for a handler that reads the signal', async () => {
    const limit = flowControl(controller(), options);
    const made = countAbortControllers();
    await exchange((req, res) => limit(req, res, () => res.end()));
    expect(made()).toBe(0);
    await exchange((req: WithFlow<http.IncomingMessage>, res) =>
      limit(req, res, () => res.end(String(req.flow?.signal.aborted))),
    );
    expect(made()).toBe(1);
  });

  it('has its body counted without the object of all its headers', async () => {
    const sizes: number[] = [];
    let readings = 0;
    const flow = controller();
    flow.on('dispatched', ({ item }) => sizes.push(item.byteSize));
    const limit = flowControl(flow, options);
    const watched = (req: http.IncomingMessage): NodeRequest =>
      Object.defineProperty(req, 'headers', {
        get() {
          readings += 1;
          return {};
        },
      });
    await exchange((req, res) => limit(watched(req), res, () => res.end()));
    expect({ sizes, readings }).toEqual({ sizes: [2], readings: 0 });
  });

  it('runs its handler in the turn in which it came, in Koa too', async () => {
    const app = new Koa();
    const limit = koaFlowControl(controller(), options);
    let isPrompt = false;
    app.use((ctx, next) => {
      let hasRun = false;
      const done = limit(ctx, async () => {
        hasRun = true;
        await next();
      });
      isPrompt = hasRun;
      return done;
    });
    await exchange(app.callback());
    expect(isPrompt).toBe(true);
  });
});
