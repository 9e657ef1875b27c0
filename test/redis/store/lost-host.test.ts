/**
 * A machine that is lost says nothing: the connection to it looks open. The gateway's client gives it up, and finds
 * what took its place.
 */
import { createServer, connect as dial, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import { StoreConnection } from '../../../src/gateway/shared/store-connection.js';
import { sharedConcurrency } from '../../../src/redis/index.js';
import { Store } from '../support/stores.js';
import { describeWithStores, until } from '../support/with-store.js';

const leaseMs = 500;

/**
 * An address behind which one server takes the place of another. What is connected stays so, and nothing passes any
 * more.
 */
async function address(first: number): Promise<{ port: number; replaceBy(next: number): void }> {
  let target = first;
  const open = new Set<[near: Socket, far: Socket]>();
  const server = createServer((near) => {
    const far = dial(target, '127.0.0.1');
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).pipe(near);
    open.add([near, far]);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const sockets of open) for (const socket of sockets) socket.destroy();
  });
  return {
    port: (server.address() as { port: number }).port,
    replaceBy(next) {
      target = next;
      for (const [near, far] of open) {
        near.unpipe(far);
        far.unpipe(near);
        near.resume();
      }
    },
  };
}

describeWithStores('the gateway’s client', (store) => {
  it('finds the server that took the place of a lost machine', async () => {
    const next = await Store.start(store().kind);
    onTestFinished(() => next.stop());
    const { port, replaceBy } = await address(store().port);
    const sharedState = { url: `redis://127.0.0.1:${port}`, maxConcurrency: 4 };
    const { store: at } = loadGatewayConfig({ listen: { port: 0 }, upstreams: [], sharedState }).sharedState!;
    const connection = await StoreConnection.open(at, () => undefined, leaseMs);
    const shared = sharedConcurrency(connection.store, {
      pool: 'lost',
      maxConcurrency: 4,
      refreshInterval: '50ms',
      leaseDuration: leaseMs,
      callTimeout: '400ms',
    });
    onTestFinished(async () => {
      await shared.close();
      connection.end();
    });
    const isGranted = (): boolean =>
      shared.limit === 4 && !shared.status[0]!.isExpired && shared.status[0]!.store.problem === undefined;
    await until(isGranted, () => shared.status);
    replaceBy(next.port);
    await until(
      () => shared.status[0]!.isExpired,
      () => shared.status,
    );
    await until(isGranted, () => shared.status);
    expect(shared.status[0]!.epochChanges).toBe(1);
  });
});
