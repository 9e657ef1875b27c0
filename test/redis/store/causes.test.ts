/** With every client the cause of a problem is told, not that the client has no connection; a healthy start is silent. */
import { Redis as IoRedis } from 'ioredis';
import { Redis as IoValkey } from 'iovalkey';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type RedisClient, type StoreProblem, sharedBudgets, sharedConcurrency } from '../../../src/redis/index.js';
import { freePort } from '../../support/free-port.js';
import { type Certificates, makeCertificates, startWithTls } from '../support/certificates.js';
import { Store, storeKinds } from '../support/stores.js';
import { until } from '../support/with-store.js';

interface Address {
  readonly port: number;
  readonly host?: string;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: { readonly ca?: string; readonly servername?: string };
}

interface Connected {
  readonly client: RedisClient;
  end(): unknown;
}

const retryMs = 50;
const connectTimeout = 500;

/** As the documentation says to make them: the offline queue is off. The connection is not waited for. */
const clients: Readonly<Record<string, (address: Address) => Connected>> = {
  redis({ host = '127.0.0.1', port, username, password, tls }) {
    const socket = {
      host,
      port,
      connectTimeout,
      reconnectStrategy: () => retryMs,
      ...(tls && { tls: true as const, ...tls }),
    };
    const client = createClient({
      socket,
      disableOfflineQueue: true,
      ...(username && { username }),
      ...(password && { password }),
    });
    client.on('error', () => {});
    client.connect().catch(() => {});
    return { client, end: () => client.destroy() };
  },
  ioredis: (address) => io(new IoRedis(ioOptions(address))),
  iovalkey: (address) => io(new IoValkey(ioOptions(address))),
};

function ioOptions({ host = '127.0.0.1', ...address }: Address) {
  return {
    host,
    ...address,
    connectTimeout,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => retryMs,
  };
}

function io(client: IoRedis | IoValkey): Connected {
  (client as IoRedis).on('error', () => {});
  return {
    client,
    end() {
      // A handshake that is broken off may end with two errors, and the client listens to one.
      (client as IoRedis).stream?.on('error', () => {});
      client.disconnect();
    },
  };
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A machine that is busy is not what these tests are about. */
const slow = { leaseDuration: '2s', callTimeout: '2s' };

const symptoms = /isn't writeable|is offline|max retries/;

describe.runIf(storeKinds.length > 0).each(Object.keys(clients))('through %s', (name) => {
  let certificates: Certificates;
  let store: Store;
  let tlsPort = 0;
  let closed: Store;
  let full: Store;
  let copy: Store;
  beforeAll(async () => {
    certificates = makeCertificates();
    ({ store, tlsPort } = await startWithTls(storeKinds[0]!, certificates));
    ({ store: closed } = await startWithTls(storeKinds[0]!, certificates, ['--requirepass', 'right']));
    full = await Store.start(storeKinds[0]!, ['--maxmemory', '1']);
    copy = await Store.start(storeKinds[0]!, ['--replicaof', '127.0.0.1', String(store.port)]);
  });
  afterAll(async () => {
    await Promise.all([store, closed, full, copy].map((each) => each.stop()));
    certificates.remove();
  });

  function connected(address: Address): RedisClient {
    const { client, end } = clients[name]!(address);
    ends.push(end);
    return client;
  }

  function shared(client: RedisClient, options: object = {}) {
    const detector = sharedConcurrency(client, { pool: name, maxConcurrency: 8, ...options });
    const problems: StoreProblem[] = [];
    detector.on('problem', (problem) => problems.push(problem));
    ends.push(() => detector.close());
    return { detector, problems };
  }

  it('a healthy start says nothing, and the first call is answered, long before a refresh', async () => {
    const first = shared(connected({ port: store.port }), slow);
    await until(
      () => first.detector.limit === 8,
      () => first.detector.status,
    );
    const patient = { refreshInterval: '60s', leaseDuration: '120s', callTimeout: '10s' };
    const second = shared(connected({ port: tlsPort, tls: { ca: certificates.ca } }), patient);
    await until(
      () => second.detector.status[0]!.replicas > 0,
      () => second.detector.status,
    );
    for (const { detector } of [first, second])
      expect(detector.status[0]!.store).toMatchObject({ misses: 0, problem: undefined });
    expect(second.detector.status[0]!.store.calls).toBe(1);
    expect([...first.problems, ...second.problems]).toEqual([]);
  });

  it('a budget that is asked for before there is a connection waits for it', async () => {
    const budgets = sharedBudgets(connected({ port: store.port }), {
      name,
      budgets: [{ name: 'requests', limit: 60 }],
      callTimeout: '5s',
    });
    ends.push(() => budgets.close());
    const taken = await budgets.take({ byteSize: 1 }, { fairnessId: 'tenant', priority: 0 });
    expect(taken).toMatchObject({ isTaken: true, isLocal: false });
  });

  const plain = (): number => store.port;
  it.each<[string, () => Address | Promise<Address>, string, RegExp]>([
    ['a store that is not there', async () => ({ port: await freePort() }), 'unreachable', /ECONNREFUSED/],
    [
      'a host that is not there',
      () => ({ host: 'no-such-host.invalid', port: 1 }),
      'unreachable',
      /ENOTFOUND|EAI_AGAIN/,
    ],
    ['a wrong password', () => ({ port: closed.port, password: 'wrong' }), 'auth', /WRONGPASS/],
    ['a missing password', () => ({ port: closed.port }), 'auth', /NOAUTH/],
    ['a store that is full', () => ({ port: full.port }), 'out-of-memory', /OOM/],
    ['a copy that takes no writes', () => ({ port: copy.port }), 'read-only', /READONLY/],
    ['an unknown authority', () => ({ port: tlsPort, tls: {} }), 'tls', /self-signed|SELF_SIGNED.*CA/],
    ['another authority', () => ({ port: tlsPort, tls: { ca: certificates.otherCa } }), 'tls', /certificate.*\bca\b/],
    [
      'a name that the certificate does not have',
      () => ({ port: tlsPort, tls: { ca: certificates.ca, servername: 'elsewhere.example' } }),
      'tls',
      /altnames/,
    ],
    [
      'TLS at a port without it',
      () => ({ port: plain(), tls: { ca: certificates.ca } }),
      'unreachable',
      /timeout|ETIMEDOUT.*TLS/i,
    ],
    ['a port that wants TLS', () => ({ port: tlsPort }), 'unreachable', /ECONNRESET|closed.*TLS/],
  ])('%s is told as the cause', async (_, address, code, says) => {
    const { problems } = shared(connected(await address()), slow);
    await until(() => problems.length > 0);
    expect(problems[0]).toMatchObject({ code, message: expect.stringMatching(says) });
    expect(JSON.stringify(problems)).not.toMatch(symptoms);
  });

  it('a store that goes away is told with its cause, and is used again as soon as it is back', async () => {
    const { detector, problems } = shared(connected({ port: store.port }), {
      leaseDuration: '20s',
      refreshInterval: '10s',
    });
    await until(() => detector.status[0]!.replicas > 0);
    await store.kill();
    const asked = shared(connected({ port: store.port }), { refreshInterval: '50ms' });
    await until(() => asked.problems.length > 0);
    expect(asked.problems[0]).toMatchObject({ code: 'unreachable', message: expect.stringMatching(/ECONNREFUSED/) });
    const { calls } = detector.status[0]!.store;
    await store.up();
    // Long before its next refresh.
    await until(() => detector.status[0]!.store.calls > calls && detector.status[0]!.store.problem === undefined);
    expect(JSON.stringify([...problems, ...asked.problems])).not.toMatch(symptoms);
  });
});
