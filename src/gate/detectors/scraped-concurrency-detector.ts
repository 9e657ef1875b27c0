/** Saturation from the requests that model servers report, whoever sent them. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import { hasFreshMetrics, isAvailable } from '../../endpoints/available-pool.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { SaturationDetector } from '../saturation-detector.js';

export interface ScrapedConcurrencyOptions {
  /** Requests, running and waiting, at which an endpoint of weight 1 is full; from 1 up. @default 100 */
  maxConcurrency?: number | undefined;
  /** Metrics older than this are stale, from `reportDueAtMs` where it is later; ms, or text as '2s'. @default '2s' */
  metricsStalenessThreshold?: number | string | undefined;
}

const type = 'scraped-concurrency-detector';

const shape = {
  maxConcurrency: s.optional(s.positiveInteger(), 100),
  metricsStalenessThreshold: s.optional(s.positiveDuration('2s'), 2000),
};
const options = /* @__PURE__ */ s.object(shape);

/** In llm-d own dispatches count for a fixed time; here until a report holds them, so no time is needed. */
const parameters = /* @__PURE__ */ s.object(
  s.withKeys(shape, { ownDispatchWindow: s.optional(s.positiveDuration('1s')) }),
);

/**
 * The load over the capacity. The load is what the servers report, running and waiting, plus what this controller has
 * sent them since. The capacity is that of servers with fresh metrics. Several gateways before one pool agree about it,
 * because all of them read the same reports. A stale endpoint keeps its last load and gives no capacity, and so does
 * one that is shown although it is not available. A pool without fresh metrics is full. O(endpoints). `filter` keeps
 * endpoints with fresh metrics that are below their own capacity. Differs from llm-d-router: own dispatches count until
 * a report holds them, not for a fixed second. Source: llm-d-router, scraped-concurrency-detector.
 * @throws FlowConfigError
 */
export function scrapedConcurrency(given: ScrapedConcurrencyOptions = {}): SaturationDetector {
  const { maxConcurrency, metricsStalenessThreshold } = s.parse(options, given, 'scrapedConcurrency');

  function seatsOf({ weight }: EndpointView): number {
    return Math.max(1, Math.floor(maxConcurrency * weight));
  }
  /** The load of an endpoint that never reported is what this controller sent it. */
  function loadOf({ metrics, unsampledRequests, inFlightRequests }: EndpointView): number {
    if (metrics === undefined) return inFlightRequests;
    return metrics.runningRequests + metrics.waitingQueueSize + unsampledRequests;
  }

  function givesCapacity(endpoint: EndpointView, nowMs: number): boolean {
    return isAvailable(endpoint, nowMs) && hasFreshMetrics(endpoint, metricsStalenessThreshold, nowMs);
  }

  return {
    type,
    needsPool: true,
    saturation({ endpoints }, nowMs) {
      let load = 0;
      let capacity = 0;
      for (const endpoint of endpoints) {
        load += loadOf(endpoint);
        if (givesCapacity(endpoint, nowMs)) capacity += seatsOf(endpoint);
      }
      return capacity === 0 ? 1 : load / capacity;
    },
    filter: (endpoints, nowMs) =>
      endpoints.filter((endpoint) => givesCapacity(endpoint, nowMs) && loadOf(endpoint) < seatsOf(endpoint)),
    seatsOf,
  };
}

export const scrapedConcurrencyPlugin: Definition<SaturationDetector> = define(
  type,
  parameters,
  ({ ownDispatchWindow: _, ...given }) => scrapedConcurrency(given),
);
