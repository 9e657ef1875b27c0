/** A store comes back with a file of long ago: it knows replicas that are gone, and none of those that are there. */
import { copyFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type SharedConcurrency, sharedConcurrency } from '../../../src/redis/index.js';
import { Store, storeKinds } from '../support/stores.js';
import { until } from '../support/with-store.js';

const limit = 16;
const refreshMs = 50;
const leaseMs = 1_000;
const drainMs = 1_000;
/** Stated in docs/scale-out.md, two refreshes included; the rest is for a busy machine. */
const backMs = leaseMs + drainMs + 2 * refreshMs;
const busyMs = 3_000;

describe.runIf(storeKinds.length > 0).each(storeKinds)('an old file of $name', (kind) => {
  it.each(['BGSAVE', 'SAVE'])(
    'made by %s costs seats for a lease and a drain, and nothing goes over',
    async (command) => {
      const store = await Store.start(kind);
      onTestFinished(() => store.stop());
      const living = new Set<SharedConcurrency>();
      let [most, wholeSinceMs] = [0, Number.NaN];
      const look = (): void => {
        const inUse = [...living].reduce((sum, shared) => sum + shared.limit, 0);
        most = Math.max(most, inUse);
        if (inUse < limit) wholeSinceMs = Number.NaN;
        else if (Number.isNaN(wholeSinceMs)) wholeSinceMs = performance.now();
      };
      const looking = setInterval(look, 2);
      onTestFinished(() => clearInterval(looking));
      const join = (replica: string): SharedConcurrency => {
        const client = new Redis(store.port, { enableOfflineQueue: false, retryStrategy: () => 20 });
        client.on('error', () => {});
        const timing = { refreshInterval: refreshMs, leaseDuration: leaseMs, drainDuration: drainMs, callTimeout: 500 };
        const shared = sharedConcurrency(client, { pool: 'p', replica, maxConcurrency: limit, ...timing });
        // Each could use all of it.
        shared.attach({ stats: () => ({ waiting: limit }) });
        living.add(shared);
        onTestFinished(async () => {
          await shared.close();
          client.disconnect();
        });
        return shared;
      };
      const share = (shared: SharedConcurrency, seats: number): Promise<void> =>
        until(
          () => shared.limit === seats,
          () => shared.status,
        );
      const asking = new Redis(store.port, { retryStrategy: () => 20 });
      asking.on('error', () => {});
      onTestFinished(() => asking.disconnect());

      const old = join('old');
      await share(old, limit);
      const before = await asking.lastsave();
      // The time of a save is told in seconds.
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      await asking.call(command);
      let saved = before;
      while (saved === before) saved = await asking.lastsave();
      const file = `${store.directory}/dump.rdb`;
      copyFileSync(file, `${file}.old`);

      // Those that the file knows go, and others come.
      const next = [join('a'), join('b')];
      await until(() => next.every((shared) => shared.limit > 0));
      living.delete(old);
      await old.close();
      for (const shared of next) await share(shared, limit / 2);
      const epochs = next.map((shared) => shared.status[0]?.epochChanges);
      await store.kill();
      copyFileSync(`${file}.old`, file);
      await store.up();
      const upAtMs = performance.now();
      await until(
        () => next.every((shared, index) => shared.status[0]?.epochChanges !== epochs[index]),
        () => next.map((shared) => shared.status),
      );
      // Who comes now has a part in time, too.
      next.push(join('late'));
      await until(
        () => next.every((shared) => shared.limit >= 5) && performance.now() - wholeSinceMs > 2 * refreshMs,
        () => next.map((shared) => shared.status),
      );
      expect(wholeSinceMs - upAtMs).toBeLessThan(backMs + busyMs);
      expect(most).toBe(limit);
    },
  );
});
