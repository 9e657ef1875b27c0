/** Connections that publish and that listen, of node-redis, ioredis and iovalkey, by the methods that are used. */
import { letProcessEnd } from '../../base/clock.js';
import type { Clock } from '../../index.js';

/** A connection that publishes: any client. */
export interface MessagePublisher {
  publish(channel: string, message: string): Promise<unknown>;
}

/** A connection of node-redis that only listens: `client.duplicate()`, connected. */
export interface NodeRedisSubscriber {
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
}

/** A connection of ioredis or iovalkey that only listens. */
export interface IoRedisSubscriber {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: 'message', listener: (channel: string, message: string) => void): unknown;
  off(event: 'message', listener: (channel: string, message: string) => void): unknown;
}

export type MessageSubscriber = NodeRedisSubscriber | IoRedisSubscriber;

function isIoRedis(subscriber: MessageSubscriber): subscriber is IoRedisSubscriber {
  return 'evalsha' in subscriber;
}

/** The time between two attempts to listen, and the longest that stopping takes. */
const againMs = 1_000;

/**
 * Listens until it is stopped. If the store cannot be reached, it tries again. Calls `begun` once it listens. Returns
 * a function that stops it, which does not wait for a store that is away, and never rejects.
 */
export function keepListening(
  subscriber: MessageSubscriber,
  channel: string,
  receive: (message: string) => void,
  clock: Clock,
  begun: () => void = () => {},
): () => Promise<void> {
  let isStopped = false;
  let timer: unknown;
  let unlisten = (): void => {};
  let attempt = begin();

  function hear(message: string): void {
    if (!isStopped) receive(message);
  }
  async function begin(): Promise<void> {
    try {
      unlisten = await listen(subscriber, channel, hear);
      if (!isStopped) begun();
    } catch {
      if (isStopped) return;
      timer = clock.setTimeout(() => {
        attempt = begin();
      }, againMs);
      letProcessEnd(timer);
    }
  }
  async function end(): Promise<void> {
    await attempt;
    unlisten();
    try {
      await subscriber.unsubscribe(channel);
    } catch {}
  }
  return async () => {
    isStopped = true;
    clock.clearTimeout(timer);
    const tooLong = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, againMs);
    });
    await Promise.race([end(), tooLong]);
    clock.clearTimeout(timer);
  };
}

/** Resolves to a function that stops listening. Rejects when the store cannot be reached; then no message comes. */
async function listen(
  subscriber: MessageSubscriber,
  channel: string,
  receive: (message: string) => void,
): Promise<() => void> {
  if (!isIoRedis(subscriber)) {
    await subscriber.subscribe(channel, receive);
    return () => {};
  }
  const onMessage = (from: string, message: string): void => {
    if (from === channel) receive(message);
  };
  subscriber.on('message', onMessage);
  try {
    await subscriber.subscribe(channel);
  } catch (error) {
    subscriber.off('message', onMessage);
    throw error;
  }
  return () => subscriber.off('message', onMessage);
}
