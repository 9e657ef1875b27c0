import { Redis as IoRedis } from 'ioredis';
import { Redis as IoValkey } from 'iovalkey';
import { createClient } from 'redis';
import { afterEach, expect, it } from 'vitest';
import type { MessagePublisher, MessageSubscriber } from '../../../src/redis/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { SessionReplica } from '../../support/session-replica.js';
import { describeWithEngines, until } from '../support/with-engine.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Pair {
  readonly publisher: MessagePublisher;
  readonly subscriber: MessageSubscriber;
}

function ioPair(make: () => IoRedis | IoValkey): Pair {
  const [publisher, subscriber] = [make(), make()];
  ends.push(
    () => publisher.disconnect(),
    () => subscriber.disconnect(),
  );
  return { publisher, subscriber };
}

const connections: Readonly<Record<string, (url: string) => Promise<Pair>>> = {
  redis: async (url) => {
    const publisher = createClient({ url });
    const subscriber = publisher.duplicate();
    await Promise.all([publisher.connect(), subscriber.connect()]);
    ends.push(
      () => publisher.destroy(),
      () => subscriber.destroy(),
    );
    return { publisher, subscriber };
  },
  ioredis: async (url) => ioPair(() => new IoRedis(url)),
  iovalkey: async (url) => ioPair(() => new IoValkey(url)),
};

describeWithEngines('shared sessions', (engine) => {
  it.each(Object.keys(connections))('are counted in the other replica through %s until they end', async (client) => {
    // The clock stands still: nothing but messages changes the tables, however long they take.
    const clock = new ManualClock();
    const make = async (): Promise<SessionReplica> => {
      const pair = await connections[client]!(engine().url);
      const replica = new SessionReplica(clock, pair, { maxSessions: 1 }, { name: client });
      // It asks the others for their sessions once its subscription is in force.
      await until(() => replica.shared.sent === 1);
      return replica;
    };
    const [one, two, three] = [await make(), await make(), await make()];
    one.send('s1');
    await until(
      () => two.resident[1] === 1 && three.resident[1] === 1,
      () => [two.resident, three.resident],
    );
    two.send('s2');
    two.send('s1');
    await until(() => two.running.has('s1'));
    expect(two.running.has('s2')).toBe(false);
    await until(() => three.shared.received >= 2);
    one.end('s1');
    two.end('s1', true);
    await until(
      () => two.running.has('s2') && one.resident[1] === 1,
      () => [one.resident, two.resident],
    );
    await Promise.all([one, two, three].map(({ shared }) => shared.close()));
    const { received } = one.shared;
    two.end('s2', true);
    expect([one.resident, one.shared.received]).toEqual([[0, 0], received]);
  });
});
