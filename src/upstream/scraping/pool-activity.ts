/** Whether a pool has requests, and when that begins. Invariant: `onDemand` is set exactly while somebody listens. */
import type { EndpointPool } from '../../index.js';

const listenersByPool = new WeakMap<EndpointPool, Set<() => void>>();

/** True while no request runs or waits in any controller. False without controllers: the use is unknown then. */
export function isIdle({ controllers, inFlightRequests }: EndpointPool): boolean {
  return controllers.length > 0 && inFlightRequests === 0 && controllers.every(({ backlog }) => backlog.waiting === 0);
}

/** Calls `listener` as the first request after a rest runs or waits, in that operation. Returns the way to stop. */
export function onceActive(pool: EndpointPool, listener: () => void): () => void {
  const listeners = listenersByPool.get(pool) ?? new Set();
  listenersByPool.set(pool, listeners);
  listeners.add(listener);
  pool.onDemand = () => {
    for (const each of listeners) each();
  };
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) pool.onDemand = undefined;
  };
}
