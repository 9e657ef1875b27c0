/**
 * One limit for a pool that many replicas of the gateway send to: this replica's part of it, as a saturation detector.
 *
 * Invariant: the detector asks nobody; it compares what is in flight here with the last grant.
 */

import { type PoolView, type SaturationDetector, schemas } from '../../index.js';
import { type RedisClient, redisClient } from '../engine/redis-client.js';
import { CapacityLease, type LeaseDemand } from './capacity-lease.js';
import { LeaseClient } from './lease-client.js';
import type { LeaseEvents } from './lease-events.js';
import { checkTiming, type LeaseOptions, leaseSettings, leaseShape } from './lease-options.js';
import { type LeaseStatus, leaseStatus } from './lease-status.js';
import { poolLimit } from './pool-limit.js';

export interface SharedConcurrencyOptions extends LeaseOptions {
  /** Requests in flight at which the pool is full, of all replicas together. Either this or `maxTokens`. */
  maxConcurrency?: number | undefined;
  /**
   * Tokens in flight at which the pool is full. A gate looks before it lets go: each replica may go over by its last
   * request.
   */
  maxTokens?: number | undefined;
}

/** The part of a controller that tells how much waits. */
export interface WaitingFlow {
  stats(): { readonly waiting: number };
}

/** The common part of the detectors that hold leases. */
export interface LeasedDetector extends SaturationDetector {
  /** Its leases now: one, or one for each endpoint. */
  readonly status: readonly LeaseStatus[];
  /** Tells it whose requests wait; without it, a replica that is full asks for as much as it can get. */
  attach(flow: WaitingFlow): void;
  /** Calls `listener` after each event; returns the way to stop. */
  on<E extends keyof LeaseEvents>(event: E, listener: (payload: LeaseEvents[E]) => unknown): () => void;
  /** Gives the share back, but for what is in flight. The client stays open. Never rejects. */
  close(): Promise<void>;
}

/** A detector whose limit is what this replica was granted. */
export interface SharedConcurrency extends LeasedDetector {
  /** The limit on what this replica has in flight now. */
  readonly limit: number;
  /** Sets the limit of all replicas together; while they disagree, the smallest is in force. @throws FlowConfigError */
  setLimit(limit: number): void;
}

const optionsSchema = schemas.object({
  ...leaseShape,
  maxConcurrency: schemas.optional(schemas.positiveInteger()),
  maxTokens: schemas.optional(schemas.positiveInteger()),
});

/**
 * A saturation detector for pools that several replicas share. The limit is one limit, however many replicas there are;
 * each replica holds a lease on its part, and no request waits for the network. O(1) for each request; one call of the
 * engine for each `refreshInterval`.
 *
 * In flight over all replicas never exceeds the limit while replicas reach the engine, whatever answers are lost or
 * late; with `drainDuration` as long as the longest request, nor when they do not.
 * @throws FlowConfigError
 * @example
 * const client = await createClient({ url: process.env.REDIS_URL }).on('error', log).connect();
 * const shared = sharedConcurrency(client, { pool: 'chat', maxConcurrency: 64 });
 * const flow = new FlowController({ saturationDetector: shared });
 * shared.attach(flow);
 */
export function sharedConcurrency(client: RedisClient, options: SharedConcurrencyOptions): SharedConcurrency {
  const subject = 'sharedConcurrency';
  schemas.parse(redisClient, client, `${subject}: client`);
  const parsed = schemas.parse(optionsSchema, options, subject);
  const [unit, limit] = poolLimit(parsed, subject);
  checkTiming(parsed, subject);
  const settings = leaseSettings(parsed);
  const { prefix, pool, weight, maxShare, fallback, replicas, clock, leaseDuration } = parsed;
  const terms = { limit, weight, leaseMs: leaseDuration, fallback, replicas };
  const lease = new CapacityLease(`${prefix}:{${pool}}:lease`, demand, terms);
  if (maxShare !== undefined) lease.maxShare = maxShare;
  const leases = new LeaseClient(client, settings);
  let view: PoolView | undefined;
  let attached: WaitingFlow | undefined;
  /** The most in flight since the last call, and whether something found the share used up. */
  let peak = 0;
  let isHungry = false;
  /** True while the controller is asked, which may ask the detector in turn. */
  let isAsking = false;

  function waiting(): number {
    isAsking = true;
    try {
      return attached?.stats().waiting ?? 0;
    } finally {
      isAsking = false;
    }
  }

  function inFlight(): number {
    if (view === undefined) return 0;
    return unit === 'requests' ? view.inFlightRequests : view.inFlightTokens;
  }

  function demand(): LeaseDemand {
    // The controller may let requests go while it is asked.
    const queued = waiting();
    const running = inFlight();
    const most = Math.max(peak, running);
    const wasHungry = isHungry;
    peak = running;
    isHungry = false;
    if (attached === undefined) return { inFlight: running, wants: wasHungry ? lease.limit : most };
    const each = unit === 'requests' ? 1 : Math.max(1, running / Math.max(1, view?.inFlightRequests ?? 1));
    return { inFlight: running, wants: Math.min(most + Math.ceil(queued * each), lease.limit) };
  }

  leases.add(lease);
  return {
    type: 'shared-concurrency-detector',
    get limit() {
      return lease.cap(clock.now());
    },
    get status() {
      const { replica } = settings;
      const { figures: engine, epochChanges } = leases;
      return [
        leaseStatus(lease, inFlight(), clock.now(), { pool, endpoint: undefined, replica, unit, epochChanges, engine }),
      ];
    },
    saturation(pool, nowMs) {
      view = pool;
      const running = unit === 'requests' ? pool.inFlightRequests : pool.inFlightTokens;
      const cap = lease.cap(nowMs);
      if (running > peak) peak = running;
      if (running < cap) return running / cap;
      if (!isAsking) {
        isHungry = true;
        leases.hurry(lease);
      }
      return cap > 0 ? running / cap : 1 + running;
    },
    subscribe: (listener) => leases.subscribe(listener),
    attach(flow) {
      attached = flow;
    },
    setLimit(next) {
      lease.limit = schemas.parse(schemas.positiveInteger(), next, 'setLimit');
    },
    on: (event, listener) => leases.events.on(event, listener),
    close: () => leases.close(),
  };
}
