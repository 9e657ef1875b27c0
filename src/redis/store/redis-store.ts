/** The store on Redis or Valkey, by the methods of a client that the host brings: node-redis, ioredis or iovalkey. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import { hexDigest } from './keys.js';
import type { Store, StoreMessages, StoreScript, Texts } from './store.js';

/** A client of the package `redis`: `createClient`, `createCluster` or `createSentinel`. */
export interface NodeRedisClient {
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client of `ioredis` or `iovalkey`: `Redis` or `Cluster`. */
export interface IoRedisClient {
  evalsha(sha1: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(script: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/** Any version with these methods will do, because nothing is imported. The host connects and closes it. */
export type RedisClient = NodeRedisClient | IoRedisClient;

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

/** Redis or Valkey; for scripts alone the client does. Marks, sessions: `subscriber`, such as `client.duplicate()`. */
export function redisStore(client: RedisClient & Partial<MessagePublisher>, subscriber?: MessageSubscriber): Store {
  const digests = new Map<string, string>();
  return {
    async run({ text }: StoreScript, keys, args) {
      const digest = digests.get(text) ?? hexDigest('sha1', text);
      digests.set(text, digest);
      try {
        return await evaluate(client, digest, keys, args);
      } catch (error) {
        if (!(error instanceof Error && error.message.includes('NOSCRIPT'))) throw error;
        return await evaluate(client, text, keys, args, true);
      }
    },
    onError: (listener) => listen(client, 'error', listener),
    isConnecting: () => isConnecting(client),
    onReady(listener) {
      // A cluster of node-redis says nothing else.
      const ready = (): unknown => isConnecting(client) || listener();
      const stops = ['ready', 'connect'].map((event) => listen(client, event, ready));
      return () => stops.forEach((stop) => void stop());
    },
    messages: subscriber && messagesOf(client, subscriber),
  };
}

function evaluate(client: RedisClient, script: string, keys: Texts, args: Texts, isText = false): Promise<unknown> {
  if (isNodeRedis(client)) {
    const options = { keys: [...keys], arguments: [...args] };
    return isText ? client.eval(script, options) : client.evalSha(script, options);
  }
  const rest = [keys.length, ...keys, ...args] as const;
  return isText ? client.eval(script, ...rest) : client.evalsha(script, ...rest);
}

function messagesOf(client: Partial<MessagePublisher>, subscriber: MessageSubscriber): StoreMessages {
  return {
    publish: async (channel, message) => client.publish?.(channel, message),
    async subscribe(channel, listener) {
      if (!isIoRedisSubscriber(subscriber)) {
        await subscriber.subscribe(channel, listener);
        return () => subscriber.unsubscribe(channel);
      }
      const onMessage = (from: string, message: string): void => {
        if (from === channel) listener(message);
      };
      subscriber.on('message', onMessage);
      try {
        await subscriber.subscribe(channel);
      } catch (error) {
        subscriber.off('message', onMessage);
        throw error;
      }
      return () => {
        subscriber.off('message', onMessage);
        return subscriber.unsubscribe(channel);
      };
    },
  };
}

const isIoRedisSubscriber = (subscriber: MessageSubscriber): subscriber is IoRedisSubscriber => 'evalsha' in subscriber;

function hasMethods(candidate: unknown, ...names: readonly string[]): boolean {
  if (typeof candidate !== 'object' || candidate === null) return false;
  return names.every((name) => typeof Reflect.get(candidate, name) === 'function');
}

const isNodeRedis = (candidate: unknown): candidate is NodeRedisClient => hasMethods(candidate, 'evalSha', 'eval');

const isRedisClient = (candidate: unknown): candidate is RedisClient =>
  isNodeRedis(candidate) || hasMethods(candidate, 'evalsha', 'eval');

type Listen = (event: string, listener: (error: unknown) => void) => unknown;

const isEmitter = (candidate: object): candidate is Record<'on' | 'off', Listen> => hasMethods(candidate, 'on', 'off');

function listen(client: object, event: string, listener: (error: unknown) => void): () => void {
  if (!isEmitter(client)) return () => {};
  client.on(event, listener);
  return () => client.off(event, listener);
}

/** By what clients say of themselves. One that waits for its first command (`wait`) must get it. */
function isConnecting(client: object): boolean {
  const { status, isOpen, isReady }: { status?: unknown; isOpen?: unknown; isReady?: unknown } = client;
  return typeof status === 'string' ? !settled.has(status) : isOpen === true && isReady === false;
}

const settled: ReadonlySet<string> = new Set(['ready', 'wait', 'end']);

const isStore = (candidate: unknown): candidate is Store => hasMethods(candidate, 'run', 'onError');

/** @internal */
export const storeSchema: Schema<Store> = s.element((given, report) => {
  if (isStore(given)) return given;
  if (isRedisClient(given)) return redisStore(given);
  return report('a store, or a client of redis, ioredis or iovalkey');
});

const hasMessages = (given: unknown): given is Store & { readonly messages: StoreMessages } =>
  isStore(given) && given.messages !== undefined;
/** @internal */
export const storeWithMessages: Schema<Store & { readonly messages: StoreMessages }> = s.value(
  'redisStore(client, subscriber), or another store with messages',
  hasMessages,
);
