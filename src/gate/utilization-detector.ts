/** Saturation from what the model servers report, corrected for what they cannot have reported yet. */
import type { EndpointView } from '../endpoints/endpoint.js';
import { object, optional, type Schema } from '../options/element.js';
import { parse } from '../options/parse.js';
import { atLeastZero, flag, oneOf, positiveDuration, positiveInteger, ratioAboveZero } from '../options/schemas.js';
import type { SaturationDetector } from './saturation-detector.js';

export interface UtilizationDetectorOptions {
  /** Requests waiting in a server's own queue at which it is full. @default 5 */
  queueDepthThreshold?: number | undefined;
  /** Share of the KV cache in use at which a server is full, above 0 and at most 1. @default 0.8 */
  kvCacheUtilThreshold?: number | undefined;
  /** Metrics older than this are stale; ms, or text such as '200ms'. @default '200ms' */
  metricsStalenessThreshold?: number | string | undefined;
  /** What an endpoint without fresh metrics counts: `saturated` 1, `ignore` nothing, also when it is the only one. @default 'saturated' */
  stalenessPolicy?: 'saturated' | 'ignore' | undefined;
  /** Share by which one endpoint may exceed its thresholds while the pool as a whole is not full. @default 0 */
  headroom?: number | undefined;
  /** Count what was dispatched to a server since its last sample as waiting there. @default true */
  lagCompensation?: boolean | undefined;
}

export const utilizationDetectorOptions: Schema<UtilizationDetectorOptions & { metricsStalenessThreshold?: number | undefined }> = object({
  queueDepthThreshold: optional(positiveInteger()),
  kvCacheUtilThreshold: optional(ratioAboveZero()),
  metricsStalenessThreshold: optional(positiveDuration('200ms')),
  stalenessPolicy: optional(oneOf('saturated', 'ignore')),
  headroom: optional(atLeastZero()),
  lagCompensation: optional(flag()),
});

/** A detector that also tells how many endpoints it was blind to. */
export interface UtilizationDetector extends SaturationDetector {
  /** Endpoints whose metrics were missing or stale at the last reading. */
  readonly staleEndpoints: number;
}

/**
 * The mean over endpoints of `max(waiting / queueDepthThreshold, kvCacheUsage / kvCacheUtilThreshold)`; an endpoint whose metrics are
 * missing or stale counts 1, or is left out (`stalenessPolicy`). O(endpoints).
 * `filter` keeps fresh endpoints strictly below both thresholds · (1 + headroom).
 *
 * Differs from llm-d-router: requests dispatched since an endpoint's last sample count as waiting there until a sample includes them
 * (`lagCompensation`), so that one stale reading cannot release a herd.
 * Source: llm-d-router, utilization-detector.
 * @throws FlowConfigError
 */
export function utilizationDetector(options: UtilizationDetectorOptions = {}): UtilizationDetector {
  const {
    queueDepthThreshold = 5,
    kvCacheUtilThreshold = 0.8,
    metricsStalenessThreshold = 200,
    stalenessPolicy = 'saturated',
    headroom = 0,
    lagCompensation = true,
  } = parse(utilizationDetectorOptions, options, 'utilizationDetector');
  const queueBurst = queueDepthThreshold * (1 + headroom);
  const kvBurst = kvCacheUtilThreshold * (1 + headroom);
  let staleEndpoints = 0;

  function isFresh(endpoint: EndpointView, nowMs: number): boolean {
    return endpoint.metrics !== undefined && nowMs - endpoint.metrics.sampledAtMs <= metricsStalenessThreshold;
  }
  function waitingAt(endpoint: EndpointView): number {
    const waiting = endpoint.metrics?.waitingQueueSize ?? 0;
    return lagCompensation ? waiting + endpoint.unsampledRequests : waiting;
  }
  function score(endpoint: EndpointView): number {
    return Math.max(waitingAt(endpoint) / queueDepthThreshold, (endpoint.metrics?.kvCacheUsage ?? 0) / kvCacheUtilThreshold);
  }

  return {
    type: 'utilization-detector',
    needsPool: true,
    get staleEndpoints() {
      return staleEndpoints;
    },
    saturation(pool, nowMs) {
      staleEndpoints = 0;
      if (pool.endpoints.length === 0) return 1;
      let sum = 0;
      for (const endpoint of pool.endpoints) {
        if (isFresh(endpoint, nowMs)) sum += score(endpoint);
        else staleEndpoints++;
      }
      if (stalenessPolicy === 'saturated') return (sum + staleEndpoints) / pool.endpoints.length;
      return sum / Math.max(pool.endpoints.length - staleEndpoints, 1);
    },
    filter(endpoints, nowMs) {
      return endpoints.filter(
        (endpoint) => isFresh(endpoint, nowMs) && waitingAt(endpoint) < queueBurst && (endpoint.metrics?.kvCacheUsage ?? 0) < kvBurst,
      );
    },
  };
}
