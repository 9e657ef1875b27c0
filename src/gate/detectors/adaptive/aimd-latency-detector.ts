/** Saturation from a limit that rises by one while first tokens come in time, and falls by a tenth when not. */
import { type Definition, define } from '../../../base/policy-definition.js';
import * as s from '../../../base/schema/schema.js';
import type { AdaptiveDetector, AdaptiveLimitOptions } from './adaptive-limit.js';
import { adaptiveDetector, adaptiveOptions } from './adaptive-limit.js';

/** Limits are for the whole pool. */
export interface AimdLatencyOptions extends AdaptiveLimitOptions {
  /** The latency that the pool should have when full, above 0: ms, or ms for each prompt token, as `signal` says. */
  targetMs: number;
  /** Factor on the limit after a window that was too slow or had a drop; from 0.5 to 0.99. @default 0.9 */
  backoffRatio?: number | undefined;
}

const parameters = adaptiveOptions({
  targetMs: s.aboveZero(),
  backoffRatio: s.optional(s.number({ from: 0.5, to: 0.99 }), 0.9),
});

/**
 * Additive increase, multiplicative decrease: a window with a drop, or slower than `targetMs`, multiplies the limit by
 * `backoffRatio`, rounded down; any other adds 1, unless less than half of the limit was in use. Whatever the noise,
 * the pool settles at `rate · targetMs` in flight. Gateways that share a pool settle at equal parts of it, without
 * talking to each other.
 *
 * One decision for each window, not for each request: all requests in flight report the same congestion. Source: D. M.
 * Chiu, R. Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer networks",
 * 1989; Netflix concurrency-limits, AIMDLimit, which decides for each request. @throws FlowConfigError
 */
export function aimdLatency(options: AimdLatencyOptions): AdaptiveDetector {
  const { targetMs, backoffRatio, ...limits } = s.parse(parameters, options, 'aimdLatency');
  return adaptiveDetector('aimd-latency-detector', limits, ({ limit, latency = 0, drops, peakInFlight }) => {
    if (drops > 0 || latency > targetMs) return Math.floor(backoffRatio * limit);
    return peakInFlight * 2 >= limit ? limit + 1 : limit;
  });
}

export const aimdLatencyPlugin: Definition<AdaptiveDetector> = define('aimd-latency-detector', parameters, aimdLatency);
