/**
 * The clients that a host may bring: node-redis, ioredis and iovalkey, single, cluster or Sentinel, by the methods that
 * are used.
 */
import { type Schema, schemas } from '../../index.js';

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

/**
 * Nothing is imported from any of them, so every version with these methods will do. The host connects it and closes
 * it.
 */
export type RedisClient = NodeRedisClient | IoRedisClient;

/** Calls a script by its digest, or by its text. */
export interface ScriptCaller {
  byDigest(digest: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  byText(text: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /**
   * Listens to errors of the connection, because no call rejects with them. Without a listener they would end the
   * process.
   */
  onError(listener: (error: unknown) => void): () => void;
}

function hasMethod(candidate: unknown, name: string): boolean {
  return typeof candidate === 'object' && candidate !== null && typeof Reflect.get(candidate, name) === 'function';
}

function isNodeRedis(candidate: unknown): candidate is NodeRedisClient {
  return hasMethod(candidate, 'evalSha') && hasMethod(candidate, 'eval');
}

function isIoRedis(candidate: unknown): candidate is IoRedisClient {
  return hasMethod(candidate, 'evalsha') && hasMethod(candidate, 'eval');
}

function isRedisClient(candidate: unknown): candidate is RedisClient {
  return isNodeRedis(candidate) || isIoRedis(candidate);
}

export const redisClient: Schema<RedisClient> = schemas.value('a client of redis, ioredis or iovalkey', isRedisClient);

export function scriptCaller(client: RedisClient): ScriptCaller {
  if (isNodeRedis(client)) {
    return {
      byDigest: (digest, keys, args) => client.evalSha(digest, { keys: [...keys], arguments: [...args] }),
      byText: (text, keys, args) => client.eval(text, { keys: [...keys], arguments: [...args] }),
      onError: (listener) => hearErrors(client, listener),
    };
  }
  return {
    byDigest: (digest, keys, args) => client.evalsha(digest, keys.length, ...keys, ...args),
    byText: (text, keys, args) => client.eval(text, keys.length, ...keys, ...args),
    onError: (listener) => hearErrors(client, listener),
  };
}

type Emitter = Record<'on' | 'off', (event: 'error', listener: (error: unknown) => void) => unknown>;

function isEmitter(candidate: object): candidate is Emitter {
  return hasMethod(candidate, 'on') && hasMethod(candidate, 'off');
}

function hearErrors(client: object, listener: (error: unknown) => void): () => void {
  if (!isEmitter(client)) return () => {};
  client.on('error', listener);
  return () => client.off('error', listener);
}
