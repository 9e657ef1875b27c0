import { describe, expect, it } from 'vitest';
import { EndpointPool, sessionLimit } from '../../../src/index.js';
import { sharedMarks, sharedSessions } from '../../../src/redis/index.js';
import { messageStore } from '../../support/message-channel.js';
import { pairs } from '../support/pairs.js';
import { describeWithStores, until } from '../support/with-store.js';

function poolOf(...ids: string[]): EndpointPool {
  const pool = new EndpointPool();
  for (const id of ids) pool.add(id);
  return pool;
}

describeWithStores('overload marks', (store) => {
  it.each(Object.keys(pairs))('reach the other replicas through %s, once, for as long as they last', async (client) => {
    const pools = [poolOf('a', 'b'), poolOf('a', 'b'), poolOf('b')];
    const shared = await Promise.all(
      pools.map(async (pool) => sharedMarks(messageStore(await pairs[client]!(store().url)), pool, { name: client })),
    );
    const [first, second, third] = pools as [EndpointPool, EndpointPool, EndpointPool];
    // Nobody says when a subscription is in force.
    const marking = setInterval(() => first.markOverloaded('a', 60_000), 20);
    await until(() => second.get('a')!.overloadedUntilMs > 0);
    clearInterval(marking);
    const leftMs = second.get('a')!.overloadedUntilMs - second.now();
    expect(leftMs).toBeGreaterThan(50_000);
    expect(leftMs).toBeLessThanOrEqual(60_000);
    expect(second.get('b')!.overloadedUntilMs).toBe(0);
    expect(third.endpoints.map(({ id }) => id)).toEqual(['b']);
    // What came from elsewhere is not sent on.
    expect(shared[1]!.sent).toBe(0);
    await Promise.all(shared.map((each) => each.close()));
    const { received } = shared[1]!;
    first.markOverloaded('b', 60_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(shared[1]!.received).toBe(received);
  });

  it('survive messages that are none', async () => {
    const { publisher, subscriber } = await pairs.ioredis!(store().url);
    const pool = poolOf('a');
    const shared = sharedMarks(messageStore({ publisher, subscriber }), pool, { name: 'odd' });
    const odd = [
      '',
      'null',
      '{}',
      '{"from":1}',
      '{"from":"x","endpoint":"a","forMs":-1}',
      '{"from":"x","endpoint":"zz","forMs":5}',
    ];
    const good = JSON.stringify({ from: 'x', endpoint: 'a', forMs: 1e12 });
    const sending = setInterval(async () => {
      for (const message of [...odd, good]) await publisher.publish('headgate:{odd}:marks', message).catch(() => {});
    }, 20);
    await until(() => pool.get('a')!.overloadedUntilMs > 0);
    clearInterval(sending);
    // Ten minutes at most, whatever a message says.
    expect(pool.get('a')!.overloadedUntilMs - pool.now()).toBeLessThanOrEqual(600_000);
    await shared.close();
  });
});

describe('a subscriber whose store is away at first', () => {
  const publisher = { publish: async () => 0 };
  const unsubscribe = async (): Promise<void> => {};

  it('is asked again until it listens', async () => {
    const pool = poolOf('a');
    let attempts = 0;
    let receive: ((message: string) => void) | undefined;
    const subscriber = {
      unsubscribe,
      async subscribe(_channel: string, listener: (message: string) => void) {
        if (++attempts === 1) throw new Error('The client is closed');
        receive = listener;
      },
    };
    const shared = sharedMarks(messageStore({ publisher, subscriber }), pool, { name: 'late' });
    await until(() => receive !== undefined);
    receive!(JSON.stringify({ from: 'x', endpoint: 'a', forMs: 60_000 }));
    expect(pool.get('a')!.overloadedUntilMs).toBeGreaterThan(0);
    await shared.close();
  });

  it('does not hold the end up while it queues its calls', async () => {
    const subscriber = { unsubscribe, subscribe: () => new Promise<void>(() => {}) };
    const marks = sharedMarks(messageStore({ publisher, subscriber }), poolOf('a'), { name: 'queued' });
    await expect(marks.close()).resolves.toBeUndefined();
    const sessions = sharedSessions(messageStore({ publisher, subscriber }), sessionLimit({ maxSessions: 2 }), {
      name: 'queued',
    });
    await expect(sessions.close()).resolves.toBeUndefined();
  });
});
