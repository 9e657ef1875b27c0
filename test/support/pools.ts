/** Pools as policies see them, without a controller. */
import type { EndpointView, PoolView } from '../../src/index.js';
import type { AdmissionView } from '../../src/types/index.js';

export interface EndpointFigures {
  waiting?: number;
  running?: number;
  kv?: number;
  inFlight?: number;
  /** False: it has not reported yet. @default true */
  hasReported?: boolean;
}

function endpointView(
  { waiting = 0, running = 0, kv = 0, inFlight = 0, hasReported = true }: EndpointFigures,
  id = 'a',
): EndpointView {
  return {
    id,
    labels: {},
    weight: 1,
    overloadedUntilMs: 0,
    metrics: hasReported
      ? { waitingQueueSize: waiting, runningRequests: running, kvCacheUsage: kv, sampledAtMs: 0 }
      : undefined,
    inFlightRequests: inFlight,
    inFlightTokens: 0,
    unsampledRequests: 0,
    dispatchedRequests: inFlight,
  };
}

function poolView(endpoints: readonly EndpointFigures[]): PoolView {
  const views = endpoints.map((figures, index) => endpointView(figures, String(index)));
  return {
    endpoints: views,
    inFlightRequests: views.reduce((sum, { inFlightRequests }) => sum + inFlightRequests, 0),
    inFlightTokens: 0,
  };
}

/**
 * A view of a pool at an instant; `saturation` is what a detector would say, and `reads` counts how often it was asked.
 */
interface TestView extends AdmissionView {
  reads: number;
}

export function admissionView(
  endpoints: readonly EndpointFigures[] = [{}],
  { nowMs = 0, saturation = 0 } = {},
): TestView {
  return {
    nowMs,
    pool: poolView(endpoints),
    waiting: 0,
    reads: 0,
    saturation() {
      this.reads++;
      return saturation;
    },
  };
}
