/**
 * One limit for each model server that many replicas of the gateway send to, as a saturation detector.
 *
 * Invariant: there is a lease for every endpoint of the last view of the pool, and for no other; one call serves them
 * all.
 */
import { type EndpointView, type PoolView, schemas } from '../../index.js';
import { type RedisClient, redisClient } from '../engine/redis-client.js';
import { CapacityLease } from './capacity-lease.js';
import { LeaseClient } from './lease-client.js';
import { checkTiming, type LeaseOptions, leaseSettings, leaseShape } from './lease-options.js';
import { leaseStatus } from './lease-status.js';
import { poolLimit } from './pool-limit.js';
import type { LeasedDetector, WaitingFlow } from './shared-concurrency.js';

export interface SharedEndpointsOptions extends LeaseOptions {
  /**
   * Requests in flight at which an endpoint of weight 1 is full, of all replicas together. Either this or `maxTokens`.
   */
  maxConcurrency?: number | undefined;
  /** Tokens in flight at which an endpoint of weight 1 is full. */
  maxTokens?: number | undefined;
}

const optionsSchema = schemas.object({
  ...leaseShape,
  maxConcurrency: schemas.optional(schemas.positiveInteger()),
  maxTokens: schemas.optional(schemas.positiveInteger()),
});

/**
 * `sharedConcurrency` with a limit for each endpoint, times its weight; endpoints are known by their IDs, which all
 * replicas must use alike. With `headroom: 'required'` no endpoint gets more than its limit; otherwise a request whose
 * endpoints are all full goes all the same. Endpoints may come and go. O(endpoints) for each request.
 * @throws FlowConfigError
 */
export function sharedEndpointConcurrency(client: RedisClient, options: SharedEndpointsOptions): LeasedDetector {
  const subject = 'sharedEndpointConcurrency';
  schemas.parse(redisClient, client, `${subject}: client`);
  const parsed = schemas.parse(optionsSchema, options, subject);
  const [unit, limit] = poolLimit(parsed, subject);
  checkTiming(parsed, subject);
  const settings = leaseSettings(parsed);
  const { prefix, pool, weight, maxShare, fallback, replicas, clock, leaseDuration } = parsed;
  const leases = new LeaseClient(client, settings);
  const byEndpoint = new Map<string, { readonly lease: CapacityLease; endpoint: EndpointView }>();
  let members: readonly EndpointView[] = [];
  let attached: WaitingFlow | undefined;
  let isHungry = false;
  /** True while the controller is asked, which may ask the detector in turn. */
  let isAsking = false;

  function queued(): number {
    isAsking = true;
    try {
      return attached?.stats().waiting ?? 0;
    } finally {
      isAsking = false;
    }
  }

  const inFlight = (endpoint: EndpointView): number =>
    unit === 'requests' ? endpoint.inFlightRequests : endpoint.inFlightTokens;
  const limitOf = (endpoint: EndpointView): number => Math.max(1, Math.round(limit * endpoint.weight));

  /** Every endpoint could take what waits; which it will be is not known yet. */
  function wants(endpoint: EndpointView): number {
    const waiting = queued();
    return Math.min(
      limitOf(endpoint),
      inFlight(endpoint) + (isHungry && attached === undefined ? limitOf(endpoint) : waiting),
    );
  }

  function follow(pool: PoolView): void {
    members = pool.endpoints;
    for (const endpoint of members) {
      const known = byEndpoint.get(endpoint.id);
      if (known !== undefined) known.endpoint = endpoint;
      else join(endpoint);
    }
    if (byEndpoint.size === members.length) return;
    const present = new Set(members.map(({ id }) => id));
    for (const [id, { lease }] of byEndpoint) {
      if (present.has(id)) continue;
      byEndpoint.delete(id);
      leases.remove(lease.key);
    }
  }

  function join(endpoint: EndpointView): void {
    const terms = { limit: limitOf(endpoint), weight, leaseMs: leaseDuration, fallback, replicas };
    const lease = new CapacityLease(
      `${prefix}:{${pool}}:lease:${endpoint.id}`,
      () => {
        const now = byEndpoint.get(endpoint.id)?.endpoint ?? endpoint;
        lease.limit = limitOf(now);
        const wanted = wants(now);
        return { inFlight: inFlight(now), wants: wanted };
      },
      terms,
    );
    if (maxShare !== undefined) lease.maxShare = maxShare;
    byEndpoint.set(endpoint.id, { lease, endpoint });
    leases.add(lease);
  }

  function capOf(endpoint: EndpointView, nowMs: number): number {
    return byEndpoint.get(endpoint.id)?.lease.cap(nowMs) ?? 0;
  }

  return {
    type: 'shared-endpoint-concurrency-detector',
    get status() {
      const { replica } = settings;
      const { figures: engine, epochChanges } = leases;
      return [...byEndpoint.values()].map(({ lease, endpoint }) =>
        leaseStatus(lease, inFlight(endpoint), clock.now(), {
          pool,
          endpoint: endpoint.id,
          replica,
          unit,
          epochChanges,
          engine,
        }),
      );
    },
    saturation(view, nowMs) {
      if (view.endpoints !== members) follow(view);
      let used = 0;
      let capacity = 0;
      for (const endpoint of view.endpoints) {
        const cap = capOf(endpoint, nowMs);
        capacity += cap;
        used += Math.min(inFlight(endpoint), cap);
      }
      isHungry = used >= capacity;
      if (!isHungry) return used / capacity;
      if (!isAsking) for (const { lease } of byEndpoint.values()) leases.hurry(lease);
      return 1;
    },
    filter: (endpoints, nowMs) => endpoints.filter((endpoint) => inFlight(endpoint) < capOf(endpoint, nowMs)),
    seatsOf: capOf,
    subscribe: (listener) => leases.subscribe(listener),
    attach(flow) {
      attached = flow;
    },
    on: (event, listener) => leases.events.on(event, listener),
    close: () => leases.close(),
  };
}
