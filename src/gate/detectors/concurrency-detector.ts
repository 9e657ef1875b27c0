/** Saturation from what the controller itself has in flight. */

import { object, optional, type Schema } from '../../base/schema/element.js';
import { parse } from '../../base/schema/parse.js';
import { atLeastZero, oneOf, positiveInteger } from '../../base/schema/types.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { SaturationDetector } from '../saturation-detector.js';

/** Limits are per endpoint, and the same for all endpoints. */
export interface ConcurrencyDetectorOptions {
  /** What fills an endpoint: requests, tokens, or whichever of the two is fuller. @default 'requests' */
  concurrencyMode?: 'requests' | 'tokens' | 'hybrid' | undefined;
  /** Requests in flight at which an endpoint is full. @default 100 */
  maxConcurrency?: number | undefined;
  /** Tokens in flight at which an endpoint is full. @default 1,000,000 */
  maxTokenConcurrency?: number | undefined;
  /** Share by which one endpoint may exceed its limit while the pool as a whole is not full. @default 0 */
  headroom?: number | undefined;
}

export const concurrencyDetectorOptions: Schema<ConcurrencyDetectorOptions> = object({
  concurrencyMode: optional(oneOf('requests', 'tokens', 'hybrid')),
  maxConcurrency: optional(positiveInteger()),
  maxTokenConcurrency: optional(positiveInteger()),
  headroom: optional(atLeastZero()),
});

/**
 * In-flight work over capacity. `requests` and `tokens`: sums over the pool, O(1); `hybrid`: the mean over endpoints of the fuller
 * dimension, O(endpoints). Exact and instantaneous, but blind to what the requests cost the server.
 * `filter` keeps the endpoints below `limit · (1 + headroom)`.
 * Source: llm-d-router, concurrency-detector.
 * @throws FlowConfigError
 */
export function concurrencyDetector(options: ConcurrencyDetectorOptions = {}): SaturationDetector {
  const {
    concurrencyMode = 'requests',
    maxConcurrency = 100,
    maxTokenConcurrency = 1_000_000,
    headroom = 0,
  } = parse(concurrencyDetectorOptions, options, 'concurrencyDetector');
  const requestBurst = Math.floor(maxConcurrency * (1 + headroom));
  const tokenBurst = Math.floor(maxTokenConcurrency * (1 + headroom));

  function fullness(endpoint: EndpointView): number {
    return Math.max(endpoint.inFlightRequests / maxConcurrency, endpoint.inFlightTokens / maxTokenConcurrency);
  }
  function hasRoom(endpoint: EndpointView): boolean {
    if (concurrencyMode !== 'tokens' && endpoint.inFlightRequests >= requestBurst) return false;
    return concurrencyMode === 'requests' || endpoint.inFlightTokens < tokenBurst;
  }

  return {
    type: 'concurrency-detector',
    saturation(pool) {
      const count = pool.endpoints.length;
      if (count === 0) return 1;
      if (concurrencyMode === 'requests') return pool.inFlightRequests / (count * maxConcurrency);
      if (concurrencyMode === 'tokens') return pool.inFlightTokens / (count * maxTokenConcurrency);
      let sum = 0;
      for (const endpoint of pool.endpoints) sum += fullness(endpoint);
      return sum / count;
    },
    filter: (endpoints) => endpoints.filter(hasRoom),
    /** Dispatch, release and pool changes are all that move it, and the controller sees those. */
    subscribe: () => () => {},
  };
}
