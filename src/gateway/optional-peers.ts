/**
 * Packages that a gateway uses and the library does not. They are loaded when a gateway is made; if one is missing, the
 * error says how to install it.
 */
import { FlowConfigError } from '../index.js';
import type { RedisClient } from '../redis/index.js';

/** @throws FlowConfigError that says how to install it */
export async function loadUndici(): Promise<typeof import('undici')> {
  try {
    return await import('undici');
  } catch (error) {
    throw isMissing(error, 'undici') ? missing('undici', 'for connections to the model servers') : error;
  }
}

/** Undefined when it is not installed: the gateway then has no metrics. */
export async function loadPromClient(): Promise<typeof import('prom-client') | undefined> {
  try {
    // A CommonJS package: not every loader finds its names.
    return (await import('prom-client')).default;
  } catch (error) {
    if (isMissing(error, 'prom-client')) return undefined;
    throw error;
  }
}

/** @throws FlowConfigError that says how to install it */
export async function loadOpenTelemetry(): Promise<
  typeof import('../observability/opentelemetry/index.js') & Pick<typeof import('@opentelemetry/api'), 'trace'>
> {
  try {
    const { trace } = await import('@opentelemetry/api');
    return { ...(await import('../observability/opentelemetry/index.js')), trace };
  } catch (error) {
    throw isMissing(error, '@opentelemetry/api') ? missing('@opentelemetry/api', 'for openTelemetry') : error;
  }
}

/** A connection to Redis or Valkey that queues nothing while it is broken. */
export interface StoreConnection {
  readonly client: RedisClient;
  end(): void;
}

/**
 * Does not wait for the store. The attempts to connect are half a second apart, then up to two, with jitter. They are
 * at most a third of `leaseMs` apart, because a store that comes back empty waits one lease for the calls of all
 * replicas. If nothing comes on a connection for a lease although something was asked, it is closed, because a machine
 * that is lost sends no end.
 * @throws (rejects) FlowConfigError when none of the clients is installed
 */
export async function connectStore(url: string, leaseMs: number): Promise<StoreConnection> {
  const longestMs = Math.min(2_000, leaseMs / 3);
  const reconnectMs = (attempt: number): number =>
    Math.min(longestMs, 250 * 2 ** Math.min(attempt, 3)) * (0.5 + 0.5 * Math.random());
  const patience = { connectTimeout: longestMs, socketTimeout: leaseMs };
  const options = { ...patience, enableOfflineQueue: false, maxRetriesPerRequest: 0, retryStrategy: reconnectMs };
  try {
    const { Redis } = await import('ioredis');
    const client = new Redis(url, options);
    return { client, end: () => client.disconnect() };
  } catch (error) {
    if (!isMissing(error, 'ioredis')) throw error;
  }
  try {
    const { Redis } = await import('iovalkey');
    const client = new Redis(url, options);
    return { client, end: () => client.disconnect() };
  } catch (error) {
    if (!isMissing(error, 'iovalkey')) throw error;
  }
  try {
    const { createClient } = await import('redis');
    // Its `socketTimeout` begins anew with every call that is sent, and never ends.
    const client = createClient({
      url,
      disableOfflineQueue: true,
      socket: { connectTimeout: longestMs, reconnectStrategy: reconnectMs },
    });
    // Without this listener an error would end the process. The leases report what is wrong.
    client.on('error', () => {});
    client.connect().catch(() => {});
    return { client, end: () => client.destroy() };
  } catch (error) {
    throw isMissing(error, 'redis') ? missing('ioredis', 'or iovalkey, or redis, for sharedState') : error;
  }
}

function isMissing(error: unknown, name: string): boolean {
  const isNotFound = error instanceof Error && 'code' in error && /MODULE_NOT_FOUND$/.test(String(error.code));
  return isNotFound && error.message.includes(`'${name}'`);
}

function missing(name: string, purpose: string): FlowConfigError {
  const expected = `the package ${name}, ${purpose}: npm install ${name}`;
  return new FlowConfigError('gateway', [{ path: '', expected, got: 'no such package' }]);
}
