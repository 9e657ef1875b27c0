/** Packages that a gateway uses and the library does not, loaded when one is made; errors say how to install them. */
import { FlowConfigError } from '../../index.js';
import { ioClient, nodeRedisClient, type StoreAddress, type StoreClient } from './store-clients.js';

/** @throws FlowConfigError that says how to install it */
export async function loadUndici(): Promise<typeof import('undici')> {
  const undici = await ifInstalled('undici', () => import('undici'));
  return undici ?? missing('undici', 'for connections to the model servers');
}

/** Undefined when it is not installed: the gateway then has no metrics. */
export async function loadPromClient(): Promise<typeof import('prom-client') | undefined> {
  // A CommonJS package: not every loader finds its names.
  return (await ifInstalled('prom-client', () => import('prom-client')))?.default;
}

/** Undefined when it is not installed: the gateway then has no sockets. */
export const loadWs = (): Promise<typeof import('ws') | undefined> => ifInstalled('ws', () => import('ws'));

/** @throws FlowConfigError that says how to install it */
export async function loadOpenTelemetry(): Promise<
  typeof import('../../observability/opentelemetry/index.js') & Pick<typeof import('@opentelemetry/api'), 'trace'>
> {
  const api = await ifInstalled('@opentelemetry/api', () => import('@opentelemetry/api'));
  const { trace } = api ?? missing('@opentelemetry/api', 'for openTelemetry');
  return { ...(await import('../../observability/opentelemetry/index.js')), trace };
}

/** @throws FlowConfigError that says how to install it */
export async function loadExtProc(): Promise<typeof import('../../adapters/ext-proc/index.js')> {
  const grpc = await ifInstalled('@grpc/grpc-js', () => import('@grpc/grpc-js'));
  if (grpc === undefined) missing('@grpc/grpc-js grpc-health-check protobufjs', 'for an endpoint picker');
  return import('../../adapters/ext-proc/index.js');
}

/** Undefined when it is not installed: then no expression can be read. */
export async function loadCel(): Promise<typeof import('@marcbachmann/cel-js').parse | undefined> {
  return (await ifInstalled('@marcbachmann/cel-js', () => import('@marcbachmann/cel-js')))?.parse;
}

/**
 * Makes clients that queue nothing without a connection. They try half a second apart, then up to two, with jitter, at
 * most a third of `leaseMs`. A connection that is silent for a lease is closed: a lost machine sends no end. @throws
 * (rejects) FlowConfigError when none of the clients is installed
 */
export async function loadStoreClient(leaseMs: number): Promise<(address: StoreAddress) => StoreClient> {
  const longestMs = Math.min(2_000, leaseMs / 3);
  const reconnectMs = (attempt: number): number =>
    Math.min(longestMs, 250 * 2 ** Math.min(attempt, 3)) * (0.5 + 0.5 * Math.random());
  const patience = { connectTimeout: longestMs, reconnectMs };
  const ioredis = await ifInstalled('ioredis', () => import('ioredis'));
  // `iovalkey` is made of ioredis, and takes the same options.
  const io = ioredis ?? ((await ifInstalled('iovalkey', () => import('iovalkey'))) as unknown as typeof ioredis);
  if (io !== undefined) return (address) => ioClient(io, address, { ...patience, socketTimeout: leaseMs });
  const redis = await ifInstalled('redis', () => import('redis'));
  const installed = redis ?? missing('ioredis', 'or iovalkey, or redis, for sharedState');
  return (address) => nodeRedisClient(installed, address, patience);
}

/** Undefined when the package `name`, which `load` imports, is not installed. */
async function ifInstalled<M>(name: string, load: () => Promise<M>): Promise<M | undefined> {
  try {
    return await load();
  } catch (error) {
    const isNotFound = error instanceof Error && 'code' in error && /MODULE_NOT_FOUND$/.test(String(error.code));
    if (isNotFound && error.message.includes(`'${name}'`)) return undefined;
    throw error;
  }
}

function missing(name: string, purpose: string): never {
  const expected = `the package ${name}, ${purpose}: npm install ${name}`;
  throw new FlowConfigError('gateway', [{ path: '', expected, got: 'no such package' }]);
}
