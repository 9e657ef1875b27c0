/**
 * What the replicas share. A browser reaches no Redis: the store is the package's own for one process, with the
 * protocol of Redis, and the decisions of its scripts. A cut is a call that never comes back.
 */
import { localStore, type SharedEndpoints, type Store, sharedEndpointConcurrency } from 'headgate/redis';
import type { Simulation } from 'headgate/simulator';
import { lengthS, type Settings } from './settings.ts';

export interface SharedStore {
  readonly store: Store;
  isCut: boolean;
}

/** `nowMs` tells the time of the store. */
export function sharedStore(nowMs: () => number): SharedStore {
  const local = localStore({ clock: { now: nowMs, setTimeout: () => undefined, clearTimeout: () => {} } });
  const store: Store = {
    ...local,
    run: (script, keys, args) => (shared.isCut ? new Promise(() => {}) : local.run(script, keys, args)),
  };
  const shared: SharedStore = { store, isCut: false };
  return shared;
}

/** One replica's part of the seats of each server. */
export function sharedSeats(
  { store }: SharedStore,
  replica: number,
  { seats }: Settings,
  clock: Simulation['clock'],
): SharedEndpoints {
  let drawn = replica / 7;
  return sharedEndpointConcurrency(store, {
    pool: 'playground',
    replica: `replica-${replica}`,
    maxConcurrency: seats,
    drainDuration: `${lengthS}s`,
    clock,
    // The same in each run.
    random: () => {
      drawn = (drawn + 0.618) % 1;
      return drawn;
    },
  });
}
