/** What several gateways share as workers of one machine, in one process: their stores are one. */
import { expect, it, onTestFinished } from 'vitest';
import { GatewayWorkers } from '../../../src/gateway/shared/gateway-workers.js';
import { localStore, type Store } from '../../../src/redis/index.js';
import { type Deferred, deferred, until } from '../../integration/support/until.js';
import { fileOf, loadFor, type Started, startGateway } from '../support/gateway.js';
import { serve, startUpstream } from '../support/upstream.js';

const chat = { model: 'llama', messages: [{ role: 'user', content: 'hello' }] };

function workersOf(count: number, store: Store = localStore()): GatewayWorkers[] {
  return Array.from({ length: count }, (_, index) => {
    const workers = new GatewayWorkers({
      worker: index + 1,
      count,
      store: store as ConstructorParameters<typeof GatewayWorkers>[0]['store'],
      connection: { store, follow: () => {}, end: () => {} },
      together: async (_what, given) => given,
    });
    onTestFinished(() => workers.close());
    return workers;
  });
}

async function startAll(file: object, count = 2, store?: Store): Promise<[Started, Started]> {
  const started = [];
  for (const workers of workersOf(count, store)) started.push(await startGateway(file, workers));
  return started as [Started, Started];
}

/** A model server that answers when it is told to. */
async function slowServer(): Promise<{ url: string; seen: { now: number; most: number }; gate: Deferred<void> }> {
  const seen = { now: 0, most: 0 };
  const gate = deferred();
  const { url } = await startUpstream((received, index) => {
    seen.most = Math.max(seen.most, ++seen.now);
    void gate.promise.then(() => {
      seen.now--;
      serve(received, index);
    });
  });
  return { url, seen, gate };
}

it('have one limit, of which the hungry one gets all', async () => {
  const { url, seen, gate } = await slowServer();
  const all = await startAll(fileOf([url], {}, 4));
  const [first, second] = all;
  const answers = Array.from({ length: 6 }, () => first.post(chat));
  await until(
    () => JSON.stringify(first.gateway.shares),
    () => seen.now === 4,
  );
  answers.push(...Array.from({ length: 6 }, () => second.post(chat)));
  gate.resolve();
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(12).fill(200));
  expect(seen.most).toBe(4);
  expect(second.gateway.shares).toMatchObject([{ pool: 'workers-0-maxConcurrency', limit: 4 }]);
});

it('have the limit of the file in force, and not of one that was only read', async () => {
  const { url } = await startUpstream();
  const [workers] = workersOf(1) as [GatewayWorkers];
  const { gateway, post } = await startGateway(fileOf([url], {}, 4), workers);
  await (await post(chat)).arrayBuffer();
  const limits = (): number[] => gateway.shares.map(({ limit }) => limit);
  loadFor(fileOf([url], {}, 2), workers);
  await (await post(chat)).arrayBuffer();
  expect(limits()).toEqual([4]);
  gateway.reconfigure(loadFor(fileOf([url], {}, 3), workers));
  await expect.poll(limits).toEqual([3]);
  // A file without such a limit gives it back.
  const flowControl = { saturationDetector: { pluginRef: 'utilization-detector' } };
  gateway.reconfigure(loadFor(fileOf([url], { plugins: [{ type: 'utilization-detector' }], flowControl }), workers));
  expect(limits()).toEqual([]);
});

it('have one quota', async () => {
  const { url } = await startUpstream();
  const quotas = [{ unit: 'requests', limit: 4, per: '1h', burst: 4 }];
  const plugins = [{ type: 'quota-detector', parameters: { groups: [{ name: 'account', quotas }] } }];
  const flowControl = { saturationDetector: { pluginRef: 'quota-detector' }, defaultRequestTTL: '1s' };
  const [first, second] = await startAll(fileOf([url], { plugins, flowControl }));
  const answers = await Promise.all(Array.from({ length: 6 }, () => [first.post(chat), second.post(chat)]).flat());
  const passed = answers.filter(({ status }) => status === 200).length;
  expect(passed).toBeLessThanOrEqual(4);
  expect(passed).toBeGreaterThan(0);
});

it('count the sessions of all', async () => {
  const { url } = await startUpstream();
  const plugins = [{ type: 'session-limit-detector', parameters: { maxSessions: 1 } }];
  const flowControl = { saturationDetector: { pluginRef: 'session-limit-detector' }, defaultRequestTTL: '100ms' };
  const [first, second] = await startAll(fileOf([url], { plugins, flowControl }));
  const turn = async ({ post }: Started, session: string): Promise<number> => {
    const response = await post(chat, { headers: { 'x-claude-code-session-id': session } });
    await response.arrayBuffer();
    return response.status;
  };
  expect(await turn(first, 'red')).toBe(200);
  expect(await turn(second, 'blue')).not.toBe(200);
  expect(await turn(second, 'red')).toBe(200);
});

it('spare a server that has refused one of them', async () => {
  const { url } = await startUpstream();
  const [first, second] = await startAll(fileOf([url]));
  first.gateway.pool.markOverloaded(first.gateway.pool.endpoints[0]!, 60_000);
  await until('the other knows', () => second.gateway.flow.figures().pool?.available === 0);
});

it('tell each other what tenants received', async () => {
  const { url, gate } = await slowServer();
  const store = localStore();
  const exchanged: (readonly string[])[] = [];
  const heard: Store = {
    ...store,
    run(script, keys, args) {
      if (script.name === 'exchange') exchanged.push(keys);
      return store.run(script, keys, args);
    },
  };
  const type = 'virtual-token-counter-fairness-policy';
  const plugins = [{ type: 'concurrency-detector', parameters: { maxConcurrency: 1 } }, { type }];
  const flowControl = {
    saturationDetector: { pluginRef: 'concurrency-detector' },
    defaultPriorityBand: { fairnessPolicyRef: type },
  };
  const [first] = await startAll(fileOf([url], { plugins, flowControl }), 2, heard);
  const answers = [first.post(chat), first.post(chat)];
  await until('one that waits is told of', () => exchanged.length > 0);
  expect(exchanged[0]?.[0]).toContain('workers-0');
  gate.resolve();
  await Promise.all(answers);
});

it('have each a part of what may wait, of rates and of connections', () => {
  const [, second] = workersOf(4) as [GatewayWorkers, GatewayWorkers];
  const plugins = [
    { type: 'concurrency-detector', parameters: {} },
    { type: 'token-bucket', parameters: { capacity: 100, refillPerSecond: 10 } },
  ];
  const flowControl = {
    saturationDetector: { pluginRef: 'concurrency-detector' },
    admissionPolicyPluginRef: 'token-bucket',
    maxRequests: 10,
    maxBytes: '1Gi',
    priorityBands: [{ priority: 5, maxRequests: 2 }],
    defaultPriorityBand: { maxRequests: 8 },
  };
  const sharedState = { url: 'redis://r', maxConcurrency: 8, replicas: 3, replica: 'east' };
  const limits = { maxConnections: 1_000 };
  const config = loadFor(fileOf(['http://u'], { plugins, flowControl, limits, sharedState }), second);
  expect(config.limits.maxConnections).toBe(250);
  expect(config.flow).toMatchObject({
    limits: { maxRequests: 2, maxBytes: 2 ** 28 },
    bands: [{ priority: 5, limits: { maxRequests: 1 } }],
    defaultBand: { limits: { maxRequests: 2 } },
  });
  const admits = (tokens: number): unknown =>
    config.flow.admission?.admit({ tokens, byteSize: 1 }, { fairnessId: 't', priority: 0 }, { nowMs: 0 } as never);
  expect(admits(100)).toBe('admit');
  expect(admits(10)).toMatchObject({ retryAfterMs: 4_000 });
  // Among replicas each is one, by a name of its own.
  expect(config.sharedState?.leases).toMatchObject({ replicas: 12, replica: 'east.2' });
});
