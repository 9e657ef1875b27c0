/** A real cluster: every part through every client, a slot that moves, and a master that is killed. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { redisStore, type StoreProblem, sharedConcurrency } from '../../../src/redis/index.js';
import { Cluster } from '../support/cluster.js';
import { storeKinds } from '../support/stores.js';
import { clusterClients } from './connections.js';
import { parts } from './every-part.js';
import { SharedLoad } from './load.js';

const names = ['redis', 'ioredis', 'iovalkey'] as const;

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

describe.runIf(storeKinds.length > 0).each(storeKinds)('a cluster of $name', (kind) => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(kind);
  });
  afterAll(() => cluster.stop());

  async function connected(name: (typeof names)[number]) {
    const made = await clusterClients(cluster.ports)[name]!();
    ends.push(() => made.end());
    return made;
  }

  /** One replica for each kind of client, all of one pool. */
  async function load(pool: string): Promise<SharedLoad> {
    const all = new SharedLoad(pool, 12);
    ends.push(() => all.close());
    for (const name of names) all.add((await connected(name)).client);
    await all.settled();
    return all;
  }

  describe.each(names)('through %s', (name) => {
    it.each(Object.keys(parts))('has %s', async (part) => {
      const { client, subscriber } = await connected(name);
      await parts[part]!(redisStore(client, subscriber), `${name}-${part.replaceAll(' ', '-')}`);
    });
  });

  it('tells a client for one server that it is one of a cluster', async () => {
    const stranger = await cluster.otherMaster('headgate:{stranger}:lease');
    const client = new Redis(stranger.port);
    ends.push(() => client.disconnect());
    const shared = sharedConcurrency(client, { pool: 'stranger', maxConcurrency: 4, callTimeout: '5s' });
    ends.push(() => shared.close());
    const problem = await new Promise<StoreProblem>((resolve) => shared.on('problem', resolve));
    expect(problem).toMatchObject({ code: 'cluster', message: expect.stringMatching(/MOVED .*use a cluster client/) });
  });

  it('keeps one limit, and answers, while the slot of a pool moves to another master', async () => {
    const all = await load('moving');
    const target = await cluster.otherMaster(all.key);
    await cluster.moveSlot([all.key], target, () => all.answered());
    expect((await cluster.masterOf(all.key)).port).toBe(target.port);
    await all.answered();
    await all.settled();
    await all.goesOn(100);
    expect(all.most).toBeLessThanOrEqual(12);
    // What the shares are went along with the slot.
    expect(all.replicas.map(({ status }) => status[0]!.epochChanges)).toEqual([0, 0, 0]);
  });

  it('keeps one limit, and fails nothing, while a master is killed and its replica takes its place', async () => {
    const all = await load('failover');
    const old = await cluster.masterOf(all.key);
    await cluster.replicated(old);
    await old.kill();
    await all.goesOn(100);
    await cluster.failedOver(all.key, old);
    await all.answered();
    await all.settled();
    await all.goesOn(100);
    expect(all.most).toBeLessThanOrEqual(12);
    await old.up();
  });
});
