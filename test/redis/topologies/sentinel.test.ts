/** Real sentinels: every part through every client, and a master that is killed. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { redisStore } from '../../../src/redis/index.js';
import { Sentinels } from '../support/sentinels.js';
import { storeKinds } from '../support/stores.js';
import { sentinelClients } from './connections.js';
import { parts } from './every-part.js';
import { SharedLoad } from './load.js';

const names = ['redis', 'ioredis', 'iovalkey'] as const;

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

describe.runIf(storeKinds.length > 0).each(storeKinds)('sentinels of $name', (kind) => {
  let sentinels: Sentinels;
  beforeAll(async () => {
    sentinels = await Sentinels.start(kind);
  });
  afterAll(() => sentinels.stop());

  async function connected(name: (typeof names)[number]) {
    const made = await sentinelClients(sentinels.ports, sentinels.name)[name]!();
    ends.push(() => made.end());
    return made;
  }

  describe.each(names)('through %s', (name) => {
    it.each(Object.keys(parts))('have %s', async (part) => {
      const { client, subscriber } = await connected(name);
      await parts[part]!(redisStore(client, subscriber), `${name}-${part.replaceAll(' ', '-')}`);
    });
  });

  it('keep one limit, and fail nothing, while the master is killed and a replica takes its place', async () => {
    const all = new SharedLoad('failover', 12);
    ends.push(() => all.close());
    for (const name of names) all.add((await connected(name)).client);
    await all.settled();
    await sentinels.replicated();
    const old = await sentinels.master();
    await old.kill();
    await all.goesOn(100);
    await sentinels.failedOver(old);
    await all.answered();
    await all.settled();
    await all.goesOn(100);
    expect(all.most).toBeLessThanOrEqual(12);
  });
});
