/** What a call costs the store, by the store's own count of µs, in virtual time. */
import type { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { type LeasedDetector, sharedConcurrency, sharedEndpointConcurrency } from '../../../src/redis/index.js';
import { VirtualWorld } from '../support/virtual-world.js';
import { describeWithClient } from '../support/with-store.js';

interface Plan {
  readonly replicas: number;
  /** 0: the pool has one limit. */
  readonly endpoints: number;
  /** The part of the endpoints at which a replica's requests come and go in a second. */
  readonly busy: number;
  readonly limit: number;
  readonly leaseMs: number;
}

interface Cost {
  readonly callsPerSecond: number;
  readonly usPerCall: number;
  /** µs of the store in each second, as a part of one core. */
  readonly core: number;
}

const seconds = 5;

async function cost(redis: Redis, { replicas, endpoints, busy, limit, leaseMs }: Plan): Promise<Cost> {
  await redis.flushall();
  const world = new VirtualWorld(redis);
  const random = seededRandom(3);
  const client = world.client(() => ({}));
  const options = { pool: 'cost', maxConcurrency: limit, leaseDuration: leaseMs, clock: world, random };
  const made = Array.from({ length: replicas }, () => {
    const view = Array.from({ length: endpoints }, (_, index) => ({
      id: `server-${index}`,
      weight: 1,
      inFlightRequests: 0,
      inFlightTokens: 0,
    }));
    const pool = { endpoints: view, inFlightRequests: 0, inFlightTokens: 0 };
    const shared: LeasedDetector =
      endpoints === 0 ? sharedConcurrency(client, options) : sharedEndpointConcurrency(client, options);
    shared.attach({ stats: () => ({ waiting: 0 }) });
    return { shared, pool };
  });
  function live(): void {
    for (const { shared, pool } of made) {
      for (const endpoint of pool.endpoints) if (random() < busy) endpoint.inFlightRequests = Math.floor(random() * 4);
      if (endpoints === 0) pool.inFlightRequests = Math.floor(random() * 4);
      shared.saturation(pool as never, world.now());
    }
    world.setTimeout(live, 1_000);
  }
  live();
  // Those that start together spread out.
  await world.run(5_000);
  await redis.call('CONFIG', 'RESETSTAT');
  await world.run(5_000 + seconds * 1_000);
  const stats = (await redis.info('commandstats')) as string;
  const [, calls = 0, us = 0] = (/cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(stats) ?? []).map(Number);
  for (const { shared } of made) void shared.close();
  return { callsPerSecond: calls / seconds, usPerCall: us / calls, core: us / seconds / 1e6 };
}

/** The table of the docs: HEADGATE_TABLE=1. */
const table: readonly Plan[] = process.env.HEADGATE_TABLE
  ? [
      ...[2, 20, 200].map((replicas) => ({
        replicas,
        endpoints: 0,
        busy: 1,
        limit: 8 * replicas,
        leaseMs: 5_000,
      })),
      { replicas: 1_000, endpoints: 100, busy: 0.01, limit: 10_000, leaseMs: 5_000 },
      { replicas: 1_000, endpoints: 100, busy: 0.01, limit: 10_000, leaseMs: 20_000 },
      { replicas: 1_000, endpoints: 100, busy: 1, limit: 10_000, leaseMs: 20_000 },
    ]
  : [];

describeWithClient('a call', { timeout: 900_000 }, (redis) => {
  it('costs the store no more where there are many replicas', async () => {
    const plan = { endpoints: 0, busy: 1, limit: 1_000, leaseMs: 5_000 };
    const few = await cost(redis(), { replicas: 10, ...plan });
    const many = await cost(redis(), { replicas: 200, ...plan });
    expect(many.usPerCall).toBeLessThan(3 * few.usPerCall);
    expect(many.callsPerSecond).toBeLessThan(1.3 * 200);
  });

  it.each(table)(
    'is measured for $replicas replicas with $endpoints endpoints, of which $busy are busy, and $leaseMs ms',
    async (plan) => {
      console.log(plan, await cost(redis(), plan));
    },
  );
});
