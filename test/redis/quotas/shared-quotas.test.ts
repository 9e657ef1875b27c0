/** Shared quotas on real stores, with real clients. */
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { describe, expect, it } from 'vitest';
import { FlowConfigError, FlowController, type Lease, quotaDetector } from '../../../src/index.js';
import { type RedisClient, type SharedQuotas, sharedQuotas } from '../../../src/redis/index.js';
import type { QuotaOptions } from '../../../src/types/index.js';
import { describeWithStores, until } from '../support/with-store.js';

const key = { fairnessId: 'a', priority: 0 };

interface Replica {
  readonly flow: FlowController;
  readonly shared: SharedQuotas;
  readonly leases: Lease[];
}

function replica(client: RedisClient, name: string, quotas: QuotaOptions[]): Replica {
  const shared = sharedQuotas(client, { name, replicas: 2, callTimeout: '5s' });
  const detector = quotaDetector({ groups: [{ name: 'account', quotas }], travel: 0, rejectInfeasible: false });
  detector.drawFrom(shared);
  return { flow: new FlowController({ constraints: [detector], defaultRequestTtl: 0 }), shared, leases: [] };
}

function ask({ flow, leases }: Replica, count: number, tokens = 1): void {
  for (let i = 0; i < count; i++) {
    void flow.enqueue({ byteSize: 1, tokens }, key).then((outcome) => {
      if (outcome.type === 'Dispatched') leases.push(outcome.lease);
    });
  }
}

const close = async ({ flow, shared, leases }: Replica): Promise<void> => {
  for (const lease of leases) lease.release();
  await flow.close();
  await shared.close();
};

describeWithStores('quotas on a store', (store) => {
  it('are one quota for two replicas with two kinds of clients, and every request of it goes', async () => {
    const ioredis = new Redis(store().port);
    await ioredis.ping();
    const nodeRedis = createClient({ url: store().url });
    await nodeRedis.connect();
    // One request in an hour comes back: load of the machine changes nothing.
    const quotas: QuotaOptions[] = [{ unit: 'requests', limit: 40, per: '1h' }];
    const replicas = [replica(ioredis, 'two', quotas), replica(nodeRedis, 'two', quotas)];
    for (const each of replicas) ask(each, 40);
    const sent = (): number => replicas.reduce((sum, { leases }) => sum + leases.length, 0);
    // What may lie unused: a quarter of a burst at most.
    await until(() => sent() >= 30, sent);
    for (const each of replicas) await close(each);
    expect(sent()).toBeLessThanOrEqual(41);
    expect(await ioredis.keys('headgate:{two:*')).toEqual(['headgate:{two:account%20requests%203600000}:quota']);
    ioredis.disconnect();
    nodeRedis.destroy();
  });

  it('get back at the end what a replica bought and did not use, and what its requests did not consume', async () => {
    const client = new Redis(store().port);
    await client.ping();
    const quotas: QuotaOptions[] = [{ unit: 'tokens', limit: 10_000, per: '10h' }];
    const first = replica(client, 'back', quotas);
    ask(first, 1, 6_000);
    await until(() => first.leases.length === 1);
    for (const lease of first.leases) lease.report({ promptTokens: 1_000, completionTokens: 0 });
    await close(first);
    const level = async (): Promise<number> => {
      const [taken, leaked] = await client.hmget('headgate:{back:account%20tokens%2036000000}:quota', 't', 'l');
      return Number(taken) - Number(leaked);
    };
    expect(await level()).toBeLessThanOrEqual(1_000);
    expect(await level()).toBeGreaterThan(900);
    // Another replica starts with what is left, and not with a quota of its own.
    const second = replica(client, 'back', quotas);
    ask(second, 3, 3_000);
    await until(() => second.leases.length === 2);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(second.leases).toHaveLength(2);
    await close(second);
    client.disconnect();
  });

  it('go on by a part of their own when the store is gone, and say so', async () => {
    const client = new Redis(store().port, { retryStrategy: () => null, enableOfflineQueue: false });
    client.on('error', () => {});
    await until(
      () => client.status === 'ready',
      () => client.status,
    );
    const shared = sharedQuotas(client, { name: 'gone', replicas: 2 });
    const problems: string[] = [];
    shared.onProblem(({ code }) => problems.push(code));
    const detector = quotaDetector({
      groups: [{ name: 'account', quotas: [{ unit: 'requests', limit: 40, per: '1h' }] }],
      travel: 0,
    });
    detector.drawFrom(shared);
    const here: Replica = {
      flow: new FlowController({ constraints: [detector], defaultRequestTtl: 0 }),
      shared,
      leases: [],
    };
    client.disconnect();
    ask(here, 40);
    await until(
      () => here.leases.length >= 18,
      () => [here.leases.length, shared.status],
    );
    expect(here.leases.length).toBeLessThanOrEqual(21);
    expect(shared.status).toMatchObject([{ key: 'account requests 3600000', isLocal: true, limit: 40 }]);
    expect(problems).toEqual(['unreachable']);
    await close(here);
  });
});

describe('options of shared quotas', () => {
  const client = { evalsha: () => Promise.resolve([]), eval: () => Promise.resolve([]) };

  it('are checked, each with what was expected', () => {
    expect(() => sharedQuotas({} as never, { name: 'a' })).toThrow(FlowConfigError);
    expect(() => sharedQuotas(client, { name: 'a b' })).toThrow(/name: expected a name/);
    expect(() => sharedQuotas(client, { name: 'a', replicas: 0, refreshInterval: 0 })).toThrow(
      /replicas: expected an integer from 1 up[\s\S]*refreshInterval/,
    );
    expect(() => sharedQuotas(client, { name: 'a', fallback: 'maybe' as never })).toThrow(/fallback/);
  });

  it('count replicas by a function that may fail', async () => {
    let count: unknown = 4;
    const shared = sharedQuotas(client, {
      name: 'a',
      replicas: () => {
        if (count === 'throw') throw new Error('no');
        return count as number;
      },
    });
    const detector = quotaDetector({ groups: [{ quotas: [{ unit: 'requests', limit: 400 }] }], travel: 0 });
    detector.drawFrom(shared);
    const flow = new FlowController({ constraints: [detector] });
    for (const next of [4, 'throw', Number.NaN, -1]) {
      count = next;
      expect(flow.tryEnqueue({ byteSize: 1 }, key)?.type).toBe('Dispatched');
      expect(shared.status.every(({ balance, used }) => balance >= 0 && Number.isFinite(used))).toBe(true);
      // Answers that are none of the script's count as misses.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await flow.close();
    await shared.close();
  });
});
