/**
 * Limits that are moved by every single sample, as Netflix concurrency-limits and Envoy have them. Controls: they show
 * why this package decides once for each window.
 */
import type { PoolView } from '../../src/index.js';
import type { AdaptiveDetector } from '../../src/types/index.js';

interface Sample {
  readonly rttMs: number;
  /** In flight when the request went, itself included. */
  readonly inFlight: number;
}

/** The limit after a sample; undefined: as before. */
type Rule = (limit: number, sample: Sample) => number;

const bounded = (limit: number, least = 1, most = 1000): number => Math.max(least, Math.min(most, limit));
const logOf = (limit: number): number => Math.max(1, Math.floor(Math.log10(limit)));

function perSample(type: string, rule: Rule): AdaptiveDetector {
  let limit = 20;
  const wentWith: number[] = [];
  let inFlight = 0;
  return {
    type,
    get limit() {
      return Math.floor(limit);
    },
    lastWindow: undefined,
    saturation: (pool: PoolView) => pool.inFlightRequests / Math.max(1, Math.floor(limit)),
    dispatched() {
      inFlight++;
      wentWith.push(inFlight);
    },
    released() {
      inFlight--;
    },
    observe({ ttftMs = 0 }) {
      limit = rule(limit, { rttMs: ttftMs, inFlight: wentWith.shift() ?? inFlight });
    },
    subscribe: () => () => {},
  };
}

/** Source: Netflix concurrency-limits, VegasLimit. */
export function vegasRaw(): AdaptiveDetector {
  let shortestMs = 0;
  let sinceProbe = 0;
  return perSample('vegas-raw', (limit, { rttMs, inFlight }) => {
    if (++sinceProbe >= 30 * limit) {
      sinceProbe = 0;
      shortestMs = rttMs;
      return limit;
    }
    if (shortestMs === 0 || rttMs < shortestMs) {
      shortestMs = rttMs;
      return limit;
    }
    if (inFlight * 2 < limit) return limit;
    const queue = Math.ceil(limit * (1 - shortestMs / rttMs));
    const step = logOf(limit);
    if (queue <= step) return bounded(limit + 6 * step);
    if (queue < 3 * step) return bounded(limit + step);
    return queue > 6 * step ? bounded(limit - step) : limit;
  });
}

/** Source: Netflix concurrency-limits, Gradient2Limit. */
export function gradient2Raw(): AdaptiveDetector {
  let longMs = 0;
  let samples = 0;
  let sum = 0;
  return perSample('gradient2-raw', (limit, { rttMs, inFlight }) => {
    samples++;
    if (samples <= 10) {
      sum += rttMs;
      longMs = sum / samples;
    } else longMs += (rttMs - longMs) * (2 / 601);
    if (longMs / rttMs > 2) longMs *= 0.95;
    if (inFlight < limit / 2) return limit;
    const gradient = Math.max(0.5, Math.min(1, (1.5 * longMs) / rttMs));
    return bounded(limit * 0.8 + (limit * gradient + 4) * 0.2);
  });
}

/** Source: Netflix concurrency-limits, AIMDLimit with a timeout. */
export function aimdTimeout(timeoutMs: number): AdaptiveDetector {
  return perSample('aimd-timeout', (limit, { rttMs, inFlight }) => {
    if (rttMs > timeoutMs) return bounded(Math.floor(limit * 0.9));
    return inFlight * 2 >= limit ? bounded(limit + 1) : limit;
  });
}
