/**
 * Every client that a host may bring to a cluster, or to servers behind sentinels, as the documentation says to make
 * it.
 */
import { Cluster as IoCluster, Redis as IoRedis } from 'ioredis';
import { Redis as IoValkey, Cluster as IoValkeyCluster } from 'iovalkey';
import { createCluster, createSentinel } from 'redis';
import type { MessagePublisher, MessageSubscriber, RedisClient } from '../../../src/redis/index.js';

/** One client calls scripts and publishes; a second one only listens. */
export interface Connected {
  readonly client: RedisClient & MessagePublisher;
  readonly subscriber: MessageSubscriber;
  end(): void;
}

export type Connect = () => Promise<Connected>;

const retryMs = 100;
const retry = (): number => retryMs;

interface Emitter {
  on(event: 'error', listener: (error: unknown) => void): unknown;
  once(event: 'ready', listener: () => void): unknown;
}

function isReady(client: Emitter): Promise<void> {
  client.on('error', () => {});
  return new Promise((resolve) => client.once('ready', resolve));
}

async function ioPair<C extends RedisClient & MessagePublisher & MessageSubscriber & Emitter & { disconnect(): void }>(
  make: () => C,
): Promise<Connected> {
  const [client, subscriber] = [make(), make()];
  await Promise.all([isReady(client), isReady(subscriber)]);
  return {
    client,
    subscriber,
    end() {
      client.disconnect();
      subscriber.disconnect();
    },
  };
}

/** Clients of a cluster that is found through any of these ports. */
export function clusterClients(ports: readonly number[]): Readonly<Record<string, Connect>> {
  const roots = ports.map((port) => ({ host: '127.0.0.1', port }));
  const options = {
    enableOfflineQueue: false,
    clusterRetryStrategy: retry,
    redisOptions: { maxRetriesPerRequest: 0, enableOfflineQueue: true },
  };
  return {
    redis: async () => {
      const make = () =>
        createCluster({
          rootNodes: roots.map((socket) => ({ socket })),
          defaults: { disableOfflineQueue: true, socket: { reconnectStrategy: retryMs } },
          topologyRefreshOnReconnectionAttemptStrategy: 500,
        });
      const [client, subscriber] = [make(), make()];
      for (const each of [client, subscriber]) {
        each.on('error', () => {});
        await each.connect();
      }
      return {
        client,
        subscriber,
        end() {
          client.destroy();
          subscriber.destroy();
        },
      };
    },
    ioredis: () => ioPair(() => new IoCluster(roots, options)),
    iovalkey: () => ioPair(() => new IoValkeyCluster(roots, options)),
  };
}

/** Clients of the master that the sentinels at these ports name. */
export function sentinelClients(ports: readonly number[], name: string): Readonly<Record<string, Connect>> {
  const roots = ports.map((port) => ({ host: '127.0.0.1', port }));
  const options = {
    sentinels: roots,
    name,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: retry,
    sentinelRetryStrategy: retry,
  };
  return {
    redis: async () => {
      const client = createSentinel({
        name,
        sentinelRootNodes: roots,
        nodeClientOptions: { disableOfflineQueue: true, socket: { reconnectStrategy: retryMs } },
        scanInterval: 500,
      });
      client.on('error', () => {});
      await client.connect();
      return { client, subscriber: client, end: () => client.destroy() };
    },
    ioredis: () => ioPair(() => new IoRedis(options)),
    iovalkey: () => ioPair(() => new IoValkey(options)),
  };
}
