/** Sends a request where the KV cache has the most room. */
import type { EndpointView } from '../endpoint.js';
import type { EndpointPicker } from './endpoint-picker.js';
import { mostOf } from './least-loaded.js';

/** The share of a cache that a request is assumed to need if no report tells: a hundred requests fill it. */
const unknownShare = 0.01;

/** The share of the cache in use once the server has started all it was sent; each takes as much as one that runs. */
function expectedUsage({ metrics, unsampledRequests, inFlightRequests }: EndpointView): number {
  if (metrics === undefined) return 1 + inFlightRequests * unknownShare;
  const { kvCacheUsage, runningRequests, waitingQueueSize } = metrics;
  const share = runningRequests > 0 ? kvCacheUsage / runningRequests : unknownShare;
  return kvCacheUsage + (waitingQueueSize + unsampledRequests) * share;
}

/**
 * The endpoint whose KV cache will be the least full: as reported, plus a share for each request since, against herds.
 * Without a report it is full; stale ones count. Ties: the less loaded. Of more than 64 eight are drawn.
 */
export function leastKvUsage(): EndpointPicker {
  return {
    type: 'least-kv-picker',
    takesSamples: true,
    pick: (endpoints) => mostOf(endpoints, (endpoint) => -expectedUsage(endpoint)),
  };
}
