/** One limit of many replicas for each server. Invariant: each endpoint of the pool has a lease; one call for all. */
import * as s from '../../base/schema/schema.js';
import type { EndpointView, PoolView } from '../../index.js';
import type { RedisClient } from '../store/redis-store.js';
import type { Store } from '../store/store.js';
import type { CapacityLease } from './capacity-lease.js';
import type { SharedConcurrencyOptions } from './lease-options.js';
import { HeldLeases, type LeasedDetector } from './leased-detector.js';

export type SharedEndpointsOptions = SharedConcurrencyOptions;
export type SharedEndpoints = LeasedDetector;

/**
 * `sharedConcurrency` with a limit for each endpoint, times its weight; endpoints are known by their IDs, which all
 * replicas must use alike. With `headroom: 'required'` no endpoint gets more than its limit. Otherwise a request goes
 * even if all of its endpoints are full. Endpoints may come and go. O(endpoints) for each request.
 * @throws FlowConfigError
 */
export function sharedEndpointConcurrency(
  client: RedisClient | Store,
  options: SharedEndpointsOptions,
): SharedEndpoints {
  const held = new HeldLeases(client, options, 'sharedEndpointConcurrency');
  const { client: leases } = held;
  let { limit } = held;
  const byEndpoint = new Map<string, { readonly lease: CapacityLease; endpoint: EndpointView }>();
  let members: readonly EndpointView[] = [];
  let isHungry = false;

  const inFlight = (endpoint: EndpointView): number => held.inFlight(endpoint);
  const limitOf = (endpoint: EndpointView): number => Math.max(1, Math.floor(limit * endpoint.weight));

  /** Every endpoint could get the waiting requests; which one will is not known yet. */
  function wants(endpoint: EndpointView): number {
    const waiting = held.waiting();
    const more = isHungry && !held.isAttached ? limitOf(endpoint) : waiting;
    return Math.min(limitOf(endpoint), inFlight(endpoint) + more);
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
    const lease = held.lease(endpoint.id, limitOf(endpoint), () => {
      const now = byEndpoint.get(endpoint.id)?.endpoint ?? endpoint;
      lease.limit = limitOf(now);
      // First what it wants: the controller may let requests go while it is asked.
      return { wants: wants(now), inFlight: inFlight(now) };
    });
    byEndpoint.set(endpoint.id, { lease, endpoint });
  }

  const capOf = (endpoint: EndpointView, nowMs: number): number => byEndpoint.get(endpoint.id)?.lease.cap(nowMs) ?? 0;

  return {
    ...held.methods,
    type: 'shared-endpoint-concurrency-detector',
    get status() {
      return [...byEndpoint.values()].map(({ lease, endpoint: each }) => held.statusOf(lease, each.id, inFlight(each)));
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
      if (!held.isAsking) for (const { lease } of byEndpoint.values()) leases.callSoon(lease);
      return 1;
    },
    filter: (endpoints, nowMs) => endpoints.filter((endpoint) => inFlight(endpoint) < capOf(endpoint, nowMs)),
    seatsOf: capOf,
    setLimit(next) {
      limit = s.parse(s.positiveInteger(), next, 'setLimit');
    },
  };
}
