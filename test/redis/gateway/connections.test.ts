/** The connections that a gateway file can ask for: clusters, Sentinels, TLS, and passwords that change. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as ioredis from 'ioredis';
import * as iovalkey from 'iovalkey';
import * as redis from 'redis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import type { StoreAddress, StoreClient } from '../../../src/gateway/shared/store-clients.js';
import { ioClient, nodeRedisClient } from '../../../src/gateway/shared/store-clients.js';
import { redisStore } from '../../../src/redis/index.js';
import { fileOf, type Started, startGateway } from '../../gateway/support/gateway.js';
import { startUpstream } from '../../gateway/support/upstream.js';
import { type Certificates, makeCertificates, startWithTls } from '../support/certificates.js';
import { Cluster } from '../support/cluster.js';
import { Sentinels } from '../support/sentinels.js';
import { Store, storeKinds } from '../support/stores.js';
import { until } from '../support/with-store.js';
import { parts } from '../topologies/every-part.js';

const patience = { connectTimeout: 5_000, reconnectMs: () => 100 };

const clients: Readonly<Record<string, (address: StoreAddress) => StoreClient>> = {
  ioredis: (address) => ioClient(ioredis, address, { ...patience, socketTimeout: 60_000 }),
  iovalkey: (address) =>
    ioClient(iovalkey as unknown as typeof ioredis, address, { ...patience, socketTimeout: 60_000 }),
  redis: (address) => nodeRedisClient(redis, address, patience),
};

const limits = { pool: 'chat', maxConcurrency: 8, refreshInterval: '100ms', leaseDuration: '1s', callTimeout: '1s' };

/** As a gateway reads it from its file. */
function addressOf(section: object): StoreAddress {
  return loadGatewayConfig(fileOf(['http://a'], { sharedState: { ...limits, ...section } })).sharedState!.store;
}

async function start(section: object): Promise<Started> {
  const upstream = await startUpstream();
  return startGateway(fileOf([upstream.url], { sharedState: { ...limits, ...section } }, 100));
}

function isReady({ gateway }: Started): Promise<boolean> {
  return fetch(`${gateway.url}/readyz`).then(({ status }) => status === 200);
}

const becomesReady = (started: Started): Promise<void> =>
  expect.poll(() => isReady(started), { timeout: 60_000 }).toBe(true);

describe.runIf(storeKinds.length > 0)('a gateway file reaches', { timeout: 60_000 }, () => {
  const kind = storeKinds[0]!;
  let certificates: Certificates;
  let cluster: Cluster;
  let sentinels: Sentinels;
  let secured: Awaited<ReturnType<typeof startWithTls>>;
  beforeAll(async () => {
    certificates = makeCertificates();
    cluster = await Cluster.start(kind);
    sentinels = await Sentinels.start(kind);
    secured = await startWithTls(kind, certificates, ['--requirepass', 'right']);
  }, 120_000);
  afterAll(async () => {
    await Promise.all([cluster?.stop(), sentinels?.stop(), secured?.store.stop()]);
    certificates.remove();
  });

  const file = (name: string): object => ({ file: join(certificates.folder, name) });
  const sections: Readonly<Record<string, () => object>> = {
    'a cluster': () => ({ cluster: cluster.ports.slice(0, 2).map((port) => `redis://127.0.0.1:${port}`) }),
    'the primary that Sentinels name': () => ({
      sentinel: { name: sentinels.name, nodes: sentinels.ports.map((port) => `redis://127.0.0.1:${port}`) },
    }),
    'a server by TLS, with its authority and a password': () => ({
      url: `rediss://localhost:${secured.tlsPort}`,
      password: 'right',
      tls: { ca: file('ca.pem') },
    }),
    'a server by another name than its certificate has': () => ({
      url: `rediss://:right@127.0.0.1:${secured.tlsPort}/3`,
      tls: { ca: file('ca.pem'), cert: file('server.pem'), key: file('server.key'), serverName: 'localhost' },
    }),
  };

  describe.each(Object.keys(sections))('%s', (what) => {
    it.each(Object.keys(clients))('through %s', async (name) => {
      const { client, end } = clients[name]!(addressOf(sections[what]!()));
      onTestFinished(end);
      await parts.leases!(redisStore(client), `${name}-${what.replaceAll(' ', '-')}`);
    });

    it('and is ready, and logs no problem but that the machine is slow', async () => {
      const started = await start(sections[what]!());
      await becomesReady(started);
      expect(started.log.filter(({ event, fields }) => event === 'shared-state' && fields.code !== 'timeout')).toEqual(
        [],
      );
    });
  });

  it.each(Object.keys(clients))('no cluster with %s made for one server, and says so', async (name) => {
    const stranger = await cluster.otherMaster('headgate:{chat}:lease');
    const { client, end } = clients[name]!(addressOf({ url: stranger.url }));
    onTestFinished(end);
    const store = redisStore(client);
    const call = { name: 'get', text: "return redis.call('GET', KEYS[1])", local: () => [] };
    await until(() => store.isConnecting?.() === false);
    await expect(store.run(call, ['headgate:{chat}:lease'], [])).rejects.toThrow(/MOVED/);
  });
});

describe.runIf(storeKinds.length > 0)('a password in a file', { timeout: 60_000 }, () => {
  it.each(['password', 'url'])('is read again when it changes, as %s, and no request fails', async (place) => {
    const store = await Store.start(storeKinds[0]!, ['--requirepass', 'first']);
    onTestFinished(() => store.stop());
    const folder = mkdtempSync(join(tmpdir(), 'headgate-secret-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, 'secret');
    const write = (password: string): void =>
      writeFileSync(path, place === 'url' ? `redis://:${password}@127.0.0.1:${store.port}\n` : `${password}\n`);
    write('first');
    const section = place === 'url' ? { url: { file: path } } : { url: store.url, password: { file: path } };
    const started = await start(section);
    await becomesReady(started);

    const admin = new ioredis.Redis({ port: store.port, password: 'first' });
    onTestFinished(() => admin.disconnect());
    const logins = async (): Promise<number> =>
      Number(/\bconnected_clients:(\d+)/.exec(await admin.info('clients'))![1]);
    const before = await logins();
    await admin.config('SET', 'requirepass', 'second');
    write('second');
    // The new connection, and then no longer the old one.
    await until(() => started.gateway.shares[0]!.store.problem === undefined);
    await expect.poll(logins, { timeout: 60_000 }).toBeGreaterThan(before);
    await expect.poll(logins, { timeout: 60_000 }).toBe(before);
    // A connection that breaks comes back with the new password.
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const { calls } = started.gateway.shares[0]!.store;
    await until(
      () =>
        started.gateway.shares[0]!.store.calls > calls + 2 && started.gateway.shares[0]!.store.problem === undefined,
      () => started.gateway.shares,
    );
    expect(await isReady(started)).toBe(true);
    expect(JSON.stringify(started.log)).not.toMatch(/WRONGPASS|first|second/);
  });

  it('that the store does not take yet keeps the connection that works', async () => {
    const store = await Store.start(storeKinds[0]!, ['--requirepass', 'first']);
    onTestFinished(() => store.stop());
    const folder = mkdtempSync(join(tmpdir(), 'headgate-secret-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, 'secret');
    writeFileSync(path, 'first');
    const started = await start({ url: store.url, password: { file: path } });
    await becomesReady(started);
    writeFileSync(path, 'second');
    const admin = new ioredis.Redis({ port: store.port, password: 'first' });
    onTestFinished(() => admin.disconnect());
    const refused = async (): Promise<string> => JSON.stringify(await admin.call('ACL', 'LOG'));
    await expect.poll(refused, { timeout: 60_000 }).toContain('auth');
    expect(await isReady(started)).toBe(true);
    await admin.config('SET', 'requirepass', 'second');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(() => started.gateway.shares[0]!.store.problem === undefined);
    await becomesReady(started);
  });
});
