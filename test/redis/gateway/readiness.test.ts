/** `/readyz` of a gateway says whether it has a part of the limit that replicas share, and what is wrong if it has none. */
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fileOf, type Started, startGateway } from '../../gateway/support/gateway.js';
import { startUpstream } from '../../gateway/support/upstream.js';
import { freePort } from '../../support/free-port.js';
import { Store, storeKinds } from '../support/stores.js';

const timing = { refreshInterval: '100ms', leaseDuration: '1s', callTimeout: '1s' };

interface Readiness {
  readonly httpStatus: number;
  readonly status: string;
  readonly problem?: { readonly code: string; readonly message?: string };
}

async function start(url: string, more: object = {}, file: object = {}): Promise<Started> {
  const upstream = await startUpstream();
  return startGateway(
    fileOf([upstream.url], { sharedState: { url, pool: 'ready', ...timing, ...more }, ...file }, 100),
  );
}

async function readiness({ gateway }: Started): Promise<Readiness> {
  const response = await fetch(`${gateway.url}/readyz`);
  return { httpStatus: response.status, ...((await response.json()) as Omit<Readiness, 'httpStatus'>) };
}

const becomes = (started: Started, expected: object): Promise<void> =>
  expect.poll(() => readiness(started)).toMatchObject(expected);

const notReady = (code: string, message: RegExp): object => ({
  httpStatus: 503,
  status: 'no-share',
  problem: { code, message: expect.stringMatching(message) },
});

async function started(options: readonly string[] = []): Promise<Store> {
  const store = await Store.start(storeKinds[0]!, options);
  onTestFinished(() => store.stop());
  return store;
}

describe.runIf(storeKinds.length > 0)('a gateway is not ready while it has no share', () => {
  it.each(['maxConcurrency', 'endpointConcurrency'])('until the store has answered, by %s', async (limit) => {
    const store = await started();
    store.pause();
    const gateway = await start(store.url, { [limit]: 8 });
    expect(await readiness(gateway)).toMatchObject({ httpStatus: 503, status: 'no-share' });
    store.resume();
    await becomes(gateway, { httpStatus: 200, status: 'ready' });
    expect((await readiness(gateway)).problem).toBeUndefined();
  });

  it('without a store, unless it knows how many replicas there are', async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const [alone, oneOfTwo] = [
      await start(url, { maxConcurrency: 8 }),
      await start(url, { maxConcurrency: 8, replicas: 2 }),
    ];
    await becomes(alone, notReady('unreachable', /ECONNREFUSED/));
    await becomes(oneOfTwo, { httpStatus: 200, status: 'ready', problem: { code: 'unreachable' } });
    await becomes(alone, notReady('unreachable', /ECONNREFUSED/));
  });

  it('with a wrong password', async () => {
    const store = await started(['--requirepass', 'right']);
    const gateway = await start(`redis://:wrong@127.0.0.1:${store.port}`, { maxConcurrency: 8 });
    await becomes(gateway, notReady('auth', /rejects the password/));
    expect(JSON.stringify([await readiness(gateway), gateway.log])).not.toMatch(/wrong@|isn't writeable/);
  });

  it('at a copy that takes no writes', async () => {
    const store = await started();
    const copy = await started(['--replicaof', '127.0.0.1', String(store.port)]);
    await becomes(await start(copy.url, { maxConcurrency: 8 }), notReady('read-only', /connect to the primary/));
  });

  it('without a right', async () => {
    const store = await started();
    const admin = new Redis(store.port);
    onTestFinished(() => admin.disconnect());
    await admin.call('ACL', 'SETUSER', 'narrow', 'on', '>secret', '~*', '+@all', '-time');
    const gateway = await start(`redis://narrow:secret@127.0.0.1:${store.port}`, { maxConcurrency: 8 });
    await becomes(gateway, notReady('permission', /TIME/));
  });

  it('and strangers are told the code alone', async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const auth = { keys: [{ key: 'sk-a', tenant: 'a' }] };
    const gateway = await start(url, { maxConcurrency: 8 }, { auth });
    await becomes(gateway, { status: 'no-share', problem: { code: 'unreachable' } });
    expect((await readiness(gateway)).problem).toEqual({ code: 'unreachable' });
  });
});

it.runIf(storeKinds.length > 0)('a gateway that starts in order logs nothing of its store', async () => {
  const store = await started();
  const gateway = await start(store.url, { maxConcurrency: 8 });
  await becomes(gateway, { status: 'ready' });
  expect(gateway.log.filter(({ event }) => event.startsWith('shared-state'))).toEqual([]);
});
