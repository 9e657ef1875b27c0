/** Clients of the store as a gateway needs them: they queue nothing, and never cease to connect. */
import type { RedisClient } from '../../redis/index.js';

/** Where the store is, and what it needs. */
export interface StoreAddress {
  readonly kind: 'server' | 'cluster' | 'sentinel';
  /** The server, some nodes of the cluster, or the Sentinels. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** What the Sentinels call the primary. */
  readonly name: string;
  readonly database: number;
  readonly login: StoreLogin;
  readonly sentinelLogin: StoreLogin;
  /** Undefined: no TLS. In PEM. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string; readonly servername?: string };
}

export interface StoreLogin {
  readonly username?: string;
  readonly password?: string;
}

export interface StoreClient {
  readonly client: RedisClient;
  end(): void;
}

export interface Patience {
  readonly connectTimeout: number;
  /** Ms until attempt number … to connect. */
  readonly reconnectMs: (attempt: number) => number;
}

/** Of `ioredis` or `iovalkey`. */
export function ioClient(
  { Redis, Cluster }: Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>,
  { kind, nodes, name, database, login, sentinelLogin, tls }: StoreAddress,
  { reconnectMs, ...patience }: Patience & { readonly socketTimeout: number },
): StoreClient {
  const own = { ...login, ...(tls && { tls }), ...patience, maxRetriesPerRequest: 0 };
  if (kind === 'cluster') {
    const client = new Cluster([...nodes], {
      redisOptions: own,
      enableOfflineQueue: false,
      clusterRetryStrategy: reconnectMs,
      // Certificates have names, so names are not resolved before the connection.
      dnsLookup: (host, callback) => callback(null, host),
    });
    return { client, end: () => client.disconnect() };
  }
  const { username: sentinelUsername, password: sentinelPassword } = sentinelLogin;
  const sentinel = {
    sentinels: [...nodes],
    name,
    ...(sentinelUsername !== undefined && { sentinelUsername }),
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    sentinelRetryStrategy: reconnectMs,
  };
  const where = kind === 'sentinel' ? sentinel : nodes[0];
  const client = new Redis({ ...own, ...where, db: database, enableOfflineQueue: false, retryStrategy: reconnectMs });
  return {
    client,
    end() {
      // A handshake that is broken off may end with two errors, and the client listens to one.
      client.stream?.on('error', () => {});
      client.disconnect();
    },
  };
}

/** Of `redis`. Its `socketTimeout` begins anew with every call that is sent, and never ends: it is not used. */
export function nodeRedisClient(
  { createClient, createCluster, createSentinel }: typeof import('redis'),
  { kind, nodes, name, database, login, sentinelLogin, tls }: StoreAddress,
  { connectTimeout, reconnectMs }: Patience,
): StoreClient {
  const socket = { connectTimeout, reconnectStrategy: reconnectMs, ...(tls && { tls: true as const, ...tls }) };
  const own = { disableOfflineQueue: true, socket };
  const client = {
    server: () => createClient({ ...own, ...login, database, socket: { ...socket, ...nodes[0] } }),
    cluster: () =>
      createCluster({
        rootNodes: nodes.map((node) => ({ socket: { ...socket, ...node } })),
        defaults: { ...own, ...login },
        topologyRefreshOnReconnectionAttemptStrategy: 500,
      }),
    sentinel: () =>
      createSentinel({
        name,
        sentinelRootNodes: [...nodes],
        nodeClientOptions: { ...own, ...login, database },
        sentinelClientOptions: { ...own, ...sentinelLogin },
        scanInterval: 500,
      }),
  }[kind]();
  let isEnded = false;
  // Without this listener an error would end the process. The leases report what is wrong.
  client.on('error', () => {});
  /** A cluster and Sentinels try once. */
  async function connect(): Promise<void> {
    for (let attempt = 1; !isEnded; attempt++) {
      try {
        await client.connect();
        return;
      } catch (error) {
        if (!isEnded) client.emit('error', error);
        await new Promise((resolve) => setTimeout(resolve, reconnectMs(attempt)));
      }
    }
  }
  void connect();
  return {
    client,
    end() {
      isEnded = true;
      if (client.isOpen) client.destroy();
    },
  };
}
