// All that is added to Portkey's gateway:
// `node --import ./flow-control.mjs node_modules/@portkey-ai/gateway/build/start-server.js`.
import { AsyncLocalStorage } from 'node:async_hooks';
import { concurrencyDetector, EndpointPool, FlowController } from 'headgate';
import { flowFetch } from 'headgate/fetch';
import { flowControl } from 'headgate/hono';
import { SmartRouter } from 'hono/router/smart-router';

// The targets: a provider call goes to the server with most room, and waits for one. It is cancelled when the client
// leaves.
const context = new AsyncLocalStorage();
const pool = new EndpointPool();
for (const url of process.env.MODEL_SERVERS.split(' ')) pool.add(url);
const targets = new FlowController({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 12 }) });
globalThis.fetch = flowFetch(targets, { pool, context, skip: () => context.getStore() === undefined });

// The door: between the validator, which takes `next`, and the handler of chat completions. Portkey hands both to
// Hono's router.
const seats = 12 * pool.endpoints.length;
const door = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: seats }) });
const tenantOf = (c) => c.req.header('x-tenant') ?? 'nobody';
const wait = flowControl(door, { context, classify: (c) => ({ fairnessId: tenantOf(c), priority: 0 }) });
const { add } = SmartRouter.prototype;
SmartRouter.prototype.add = function (method, path, handler) {
  add.call(this, method, path, handler);
  if (path === '/v1/chat/completions' && handler[0].length > 1) add.call(this, method, path, [wait, handler[1]]);
};
