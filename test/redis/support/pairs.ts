/** A publisher and a subscriber of each client that is supported; both are closed after the test. */
import { Redis as IoRedis } from 'ioredis';
import { Redis as IoValkey } from 'iovalkey';
import { createClient } from 'redis';
import { onTestFinished } from 'vitest';
import type { MessagePublisher, MessageSubscriber } from '../../../src/redis/index.js';

interface Pair {
  readonly publisher: MessagePublisher;
  readonly subscriber: MessageSubscriber;
}

function ioPair(make: () => IoRedis | IoValkey): Pair {
  const [publisher, subscriber] = [make(), make()];
  onTestFinished(() => {
    subscriber.disconnect();
    publisher.disconnect();
  });
  return { publisher, subscriber };
}

export const pairs: Readonly<Record<string, (url: string) => Promise<Pair>>> = {
  redis: async (url) => {
    const publisher = createClient({ url });
    const subscriber = publisher.duplicate();
    await Promise.all([publisher.connect(), subscriber.connect()]);
    onTestFinished(() => {
      subscriber.destroy();
      publisher.destroy();
    });
    return { publisher, subscriber };
  },
  ioredis: async (url) => ioPair(() => new IoRedis(url)),
  iovalkey: async (url) => ioPair(() => new IoValkey(url)),
};
