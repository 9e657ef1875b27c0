/** Runs suites against every store that is installed. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe } from 'vitest';
import { Store, type StoreKind, storeKinds } from './stores.js';

/** `store` is started once for the suite. */
export function describeWithStores(
  name: string,
  suite: (store: () => Store) => void,
  options: readonly string[] = [],
): void {
  describe.runIf(storeKinds.length > 0)(name, () => {
    for (const kind of storeKinds) {
      describe(`on ${kind.name}`, () => {
        let store: Store;
        beforeAll(async () => {
          store = await Store.start(kind, options);
        });
        afterAll(() => store.stop());
        suite(() => store);
      });
    }
  });
}

/** For suites that one store is enough for, with a client of it. `timeout`: of each test, ms. */
export function describeWithClient(
  name: string,
  { timeout, kind = storeKinds[0] }: { readonly timeout: number; readonly kind?: StoreKind | undefined },
  suite: (redis: () => Redis) => void,
): void {
  describe.runIf(kind !== undefined)(name, { timeout }, () => {
    let store: Store;
    let redis: Redis;
    beforeAll(async () => {
      store = await Store.start(kind!);
      redis = new Redis(store.port);
    });
    afterAll(async () => {
      redis.disconnect();
      await store.stop();
    });
    suite(() => redis);
  });
}

/** Resolves when `isTrue`; rejects with what was seen after `withinMs`. */
export async function until(isTrue: () => boolean, what: () => unknown = () => '', withinMs = 30_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error(`waited ${withinMs} ms in vain: ${JSON.stringify(what())}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
