// All that is added to Portkey's gateway: `node --import ./flow-control.mjs node_modules/@portkey-ai/gateway/build/start-server.js`.
import { AsyncLocalStorage } from 'node:async_hooks';
import { concurrencyDetector, EndpointPool, FlowController } from 'headgate';
import { flowFetch } from 'headgate/fetch';
import { flowControl } from 'headgate/hono';
import { SmartRouter } from 'hono/router/smart-router';

const perServer = 12;
const servers = (process.env.MODEL_SERVERS ?? '').split(' ');
const inside = new AsyncLocalStorage();

// The targets: a provider call goes to the server with most room, and waits for one. It is cancelled when the client leaves.
const pool = new EndpointPool();
for (const url of servers) pool.add(url, { labels: { url } });
const targets = new FlowController({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: perServer }) });
const platformFetch = globalThis.fetch;
const inTurn = flowFetch(targets, { context: inside, pool, fetch: platformFetch });
globalThis.fetch = (url, init) =>
  inside.getStore() ? inTurn(url, { signal: inside.getStore().signal, ...init }) : platformFetch(url, init);

// The door: between the validator and the handler of chat completions, which Portkey hands to Hono's router one after the other.
const door = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: perServer * servers.length }) });
const wait = flowControl(door, { classify: (c) => ({ fairnessId: c.req.header('x-tenant') ?? 'nobody', priority: 0 }) });
const remember = (c, next) => inside.run({ fairnessId: c.var.flow.lease.fairnessId, signal: c.var.flow.signal }, next);
const { add } = SmartRouter.prototype;
SmartRouter.prototype.add = function (method, path, handler) {
  add.call(this, method, path, handler);
  if (method !== 'POST' || path !== '/v1/chat/completions' || this.hasDoor) return;
  this.hasDoor = true;
  for (const each of [wait, remember]) add.call(this, method, path, [each, handler[1]]);
};
