/** A replica's part of one limit, as a detector. Invariant: it asks nobody, and goes by the last grant. */
import * as s from '../../base/schema/schema.js';
import type { PoolView } from '../../index.js';
import type { RedisClient } from '../store/redis-store.js';
import type { Store } from '../store/store.js';
import type { LeaseDemand } from './capacity-lease.js';
import type { SharedConcurrencyOptions } from './lease-options.js';
import { HeldLeases, type LeasedDetector } from './leased-detector.js';

/** A detector whose limit is what this replica was granted. */
export interface SharedConcurrency extends LeasedDetector {
  /** The limit on what this replica has in flight now. */
  readonly limit: number;
}

/**
 * A saturation detector for pools that several replicas share: each holds a lease on its part of one limit, and no
 * request waits for the network. While they reach the store, the requests in flight of all never exceed the limit,
 * whatever answers are lost or late; with a `drainDuration` as long as the longest request, also while they do not.
 * O(1) for each request; one call of the store for each `refreshInterval`. @throws FlowConfigError
 * @example
 * const client = await createClient({ url: process.env.REDIS_URL }).on('error', log).connect();
 * const shared = sharedConcurrency(client, { pool: 'chat', maxConcurrency: 64 });
 * const flow = new FlowController({ saturationDetector: shared });
 * shared.attach(flow);
 */
export function sharedConcurrency(client: RedisClient | Store, options: SharedConcurrencyOptions): SharedConcurrency {
  const held = new HeldLeases(client, options, 'sharedConcurrency');
  const { unit, limit, clock, client: leases } = held;
  let view: PoolView | undefined;
  /** The most requests in flight since the last call, and whether a request found the share used up. */
  let peak = 0;
  let isHungry = false;

  const inFlight = (): number => (view === undefined ? 0 : held.inFlight(view));

  function demand(): LeaseDemand {
    // The controller may let requests go while it is asked.
    const queued = held.waiting();
    const running = inFlight();
    const most = Math.max(peak, running);
    const wasHungry = isHungry;
    peak = running;
    isHungry = false;
    if (!held.isAttached) return { inFlight: running, wants: wasHungry ? lease.limit : most };
    const each = unit === 'requests' ? 1 : Math.max(1, running / Math.max(1, view?.inFlightRequests ?? 1));
    return { inFlight: running, wants: Math.min(most + Math.ceil(queued * each), lease.limit) };
  }

  const lease = held.lease(undefined, limit, demand);
  return {
    ...held.methods,
    type: 'shared-concurrency-detector',
    get limit() {
      return lease.cap(clock.now());
    },
    get status() {
      return [held.statusOf(lease, undefined, inFlight())];
    },
    saturation(pool, nowMs) {
      view = pool;
      const running = held.inFlight(pool);
      const cap = lease.cap(nowMs);
      if (running > peak) peak = running;
      if (running < cap) return running / cap;
      if (!held.isAsking) {
        isHungry = true;
        leases.callSoon(lease);
      }
      return cap > 0 ? running / cap : 1 + running;
    },
    setLimit(next) {
      lease.limit = s.parse(s.positiveInteger(), next, 'setLimit');
    },
  };
}
