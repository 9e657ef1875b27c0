/** Saturation from what the model servers report, corrected for what they cannot have reported yet. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import { hasFreshMetrics } from '../../endpoints/available-pool.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { SaturationDetector } from '../saturation-detector.js';

/** What counts as full at one server. */
export interface UtilizationDetectorOptions {
  /**
   * Requests waiting in a server's own queue at which it is full. A request of high priority waits behind this many
   * others there. 1 keeps them in the gateway. Servers that answer dozens of requests a second need more, to have the
   * next one at hand. @default 1
   */
  queueDepthThreshold?: number | undefined;
  /** Share of the KV cache in use at which a server is full, above 0 and at most 1. @default 0.8 */
  kvCacheUtilThreshold?: number | undefined;
  /** Metrics older than this are stale, from `reportDueAtMs` where it is later; ms, or as '200ms'. @default '200ms' */
  metricsStalenessThreshold?: number | string | undefined;
  /**
   * The load that counts for an endpoint without fresh metrics. `saturated`: 1. `ignore`: nothing, also when it is the
   * only one. `last-known`: its last report, scaled down as its requests end, and 1 if it never reported. @default
   * 'saturated'
   */
  stalenessPolicy?: 'saturated' | 'ignore' | 'last-known' | undefined;
  /** Share by which one endpoint may exceed its thresholds while the pool as a whole is not full. @default 0 */
  headroom?: number | undefined;
  /** Whether requests that were dispatched to a server since its last sample count as waiting there. @default true */
  lagCompensation?: boolean | undefined;
}

const type = 'utilization-detector';

const parameters = s.object({
  queueDepthThreshold: s.optional(s.positiveInteger(), 1),
  kvCacheUtilThreshold: s.optional(s.ratioAboveZero(), 0.8),
  metricsStalenessThreshold: s.optional(s.positiveDuration('200ms'), 200),
  stalenessPolicy: s.optional(s.oneOf('saturated', 'ignore', 'last-known'), 'saturated'),
  headroom: s.optional(s.atLeastZero(), 0),
  lagCompensation: s.optional(s.flag(), true),
});

/** A detector that also tells of how many endpoints it knew nothing. */
export interface UtilizationDetector extends SaturationDetector {
  /** Endpoints whose metrics were missing or stale at the last reading. */
  readonly staleEndpoints: number;
}

interface Load {
  readonly waiting: number;
  readonly kvCacheUsage: number;
}

/**
 * The mean over endpoints of `max(waiting / queueDepthThreshold, kvCacheUsage / kvCacheUtilThreshold)`; an endpoint
 * whose metrics are missing or stale counts 1, is left out, or is judged by the last ones (`stalenessPolicy`).
 * O(endpoints). `filter` keeps endpoints that count by their metrics and are strictly below both thresholds · (1 +
 * headroom).
 * Differs from llm-d-router: requests dispatched since an endpoint's last sample count as waiting there until a sample
 * includes them, less those that have ended since (`lagCompensation`), so that one stale reading cannot release a herd.
 * Its `queueDepthThreshold` is 5, which files of llm-d keep here. Source: llm-d-router, utilization-detector.
 * @throws FlowConfigError
 */
export function utilizationDetector(options: UtilizationDetectorOptions = {}): UtilizationDetector {
  const settings = s.parse(parameters, options, 'utilizationDetector');
  const { queueDepthThreshold, kvCacheUtilThreshold, stalenessPolicy, headroom, lagCompensation } = settings;
  const queueBurst = queueDepthThreshold * (1 + headroom);
  const kvBurst = kvCacheUtilThreshold * (1 + headroom);
  /** Endpoints found stale at the last reading, or when they were looked at for it. */
  let stale = new Set<EndpointView>();
  let isReadingOver = true;

  function isFresh(endpoint: EndpointView, nowMs: number): boolean {
    return hasFreshMetrics(endpoint, settings.metricsStalenessThreshold, nowMs);
  }
  function note(endpoint: EndpointView, nowMs: number): void {
    if (isReadingOver) stale = new Set();
    isReadingOver = false;
    if (isFresh(endpoint, nowMs)) stale.delete(endpoint);
    else stale.add(endpoint);
  }
  function loadOf(endpoint: EndpointView, nowMs: number): Load | undefined {
    if (isFresh(endpoint, nowMs)) return reportedLoad(endpoint, lagCompensation);
    return stalenessPolicy === 'last-known' ? lastKnown(endpoint) : undefined;
  }
  function isBlindTo(endpoint: EndpointView, nowMs: number): boolean {
    note(endpoint, nowMs);
    return loadOf(endpoint, nowMs) === undefined;
  }

  return {
    type,
    needsPool: true,
    get staleEndpoints() {
      return stale.size;
    },
    saturation(pool, nowMs) {
      if (pool.endpoints.length === 0) {
        stale = new Set();
        return 1;
      }
      let sum = 0;
      let unknown = 0;
      let total = 0;
      for (const endpoint of pool.endpoints) {
        note(endpoint, nowMs);
        const load = loadOf(endpoint, nowMs);
        const { weight } = endpoint;
        if (load === undefined) unknown += weight;
        else
          sum +=
            weight * Math.max(load.waiting / (queueDepthThreshold * weight), load.kvCacheUsage / kvCacheUtilThreshold);
        total += weight;
      }
      isReadingOver = true;
      if (stalenessPolicy === 'ignore') return sum / Math.max(total - unknown, Number.MIN_VALUE);
      return (sum + unknown) / total;
    },
    ...(stalenessPolicy === 'ignore' ? {} : { isBlindTo }),
    filter(endpoints, nowMs) {
      return endpoints.filter((endpoint) => {
        const load = loadOf(endpoint, nowMs);
        return load !== undefined && load.waiting < queueBurst * endpoint.weight && load.kvCacheUsage < kvBurst;
      });
    },
  };
}

/** With `lagCompensation` each request sent since the report waits there, unless another has ended since. */
function reportedLoad({ metrics, unsampledRequests, endedSinceReport = 0 }: EndpointView, lagCompensation: boolean) {
  const unseen = lagCompensation ? Math.max(unsampledRequests - endedSinceReport, 0) : 0;
  return { waiting: (metrics?.waitingQueueSize ?? 0) + unseen, kvCacheUsage: metrics?.kvCacheUsage ?? 0 };
}

/** The last reported load, scaled down by the requests that have ended since. */
function lastKnown({ metrics, inFlightRequests }: EndpointView): Load | undefined {
  if (metrics === undefined) return undefined;
  const { runningRequests, kvCacheUsage } = metrics;
  const stillRunning = Math.min(inFlightRequests / Math.max(runningRequests, 1), 1);
  return { waiting: Math.max(inFlightRequests - runningRequests, 0), kvCacheUsage: kvCacheUsage * stillRunning };
}

export const utilizationDetectorPlugin: Definition<SaturationDetector> = define(type, parameters, utilizationDetector);
