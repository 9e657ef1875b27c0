/** Every client that a host may bring, as it is. */
import { Redis as IoRedis } from 'ioredis';
import { Redis as IoValkey } from 'iovalkey';
import { createClient } from 'redis';
import { expect, it } from 'vitest';
import { FlowController } from '../../../src/index.js';
import { type RedisClient, type SharedConcurrency, sharedConcurrency } from '../../../src/redis/index.js';
import { describeWithStores, until } from '../support/with-store.js';

const fast = { refreshInterval: '40ms', leaseDuration: '400ms', callTimeout: '400ms' } as const;

interface Connected {
  readonly client: RedisClient;
  readonly end: () => unknown;
}

const clients: Readonly<Record<string, (url: string) => Promise<Connected>>> = {
  redis: async (url) => {
    const client = createClient({ url });
    await client.connect();
    return { client, end: () => client.destroy() };
  },
  ioredis: async (url) => {
    const client = new IoRedis(url);
    return { client, end: () => client.disconnect() };
  },
  iovalkey: async (url) => {
    const client = new IoValkey(url);
    return { client, end: () => client.disconnect() };
  },
};

describeWithStores('a shared limit', (store) => {
  it.each(Object.keys(clients))('is granted through %s, and divided between two replicas', async (name) => {
    const { client, end } = await clients[name]!(store().url);
    const pool = `clients-${name}`;
    const replicas: SharedConcurrency[] = [];
    try {
      for (let i = 0; i < 2; i++) replicas.push(sharedConcurrency(client, { pool, maxConcurrency: 10, ...fast }));
      const divided = { pool, limit: 10, granted: 5, held: 10, replicas: 2, isExpired: false, overAdmission: 0 };
      await expect
        .poll(() => replicas.map(({ limit, status }) => ({ ...status[0], share: limit })))
        .toMatchObject(new Array(2).fill({ ...divided, share: 5 }));
      await replicas[0]!.close();
      await until(
        () => replicas[1]!.limit === 10,
        () => replicas[1]!.status,
      );
    } finally {
      for (const replica of replicas) await replica.close();
      end();
    }
  });

  it('moves to the replica that has something waiting', async () => {
    const { client, end } = await clients.ioredis!(store().url);
    const [idle, busy] = [0, 1].map(() => sharedConcurrency(client, { pool: 'moving', maxConcurrency: 10, ...fast }));
    const flow = new FlowController({ saturationDetector: busy! });
    busy!.attach(flow);
    try {
      const outcomes = Array.from({ length: 12 }, () =>
        flow.enqueue({ byteSize: 1 }, { fairnessId: 'a', priority: 0 }),
      );
      await until(
        () => flow.stats().inFlight === 9,
        () => [flow.stats(), busy!.status],
      );
      // One seat stays with the other replica, so that its first request need not wait.
      await until(
        () => idle!.limit === 1,
        () => idle!.status,
      );
      expect(flow.stats().waiting).toBe(3);
      await flow.close();
      for (const outcome of await Promise.all(outcomes)) if (outcome.type === 'Dispatched') outcome.lease.release();
    } finally {
      await Promise.all([idle!.close(), busy!.close()]);
      end();
    }
  });
});
