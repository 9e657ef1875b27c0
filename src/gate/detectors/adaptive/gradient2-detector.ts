/** Saturation from a limit that follows the ratio of long-term to recent latency. */
import { type Definition, define } from '../../../base/policy-definition.js';
import * as s from '../../../base/schema/schema.js';
import type { AdaptiveDetector, AdaptiveLimitOptions } from './adaptive-limit.js';
import { adaptiveDetector, adaptiveOptions } from './adaptive-limit.js';

/** Limits are for the whole pool. */
export interface Gradient2Options extends AdaptiveLimitOptions {
  /** Required: under lasting load the limit rises until it gets there. */
  maxLimit: number;
  /** The limit never falls below. @default 20, or `maxLimit` or `initialLimit` where that is less */
  minLimit?: number | undefined;
  /** The limit stays below `peakInFlight · max(1.2, maxFactor − log10(peakInFlight))`; from 1.2 up. @default 5 */
  maxFactor?: number | undefined;
  /** A latency up to this many times that of the long run counts as normal, from 1 up. @default 1.5 */
  tolerance?: number | undefined;
  /** Windows that the long run goes back. @default 600 */
  longWindows?: number | undefined;
  /** The part of the difference to the new limit that one window applies, above 0, at most 1. @default 0.2 */
  smoothing?: number | undefined;
  /** Requests that may always wait at the servers; from 0 up. @default 4 */
  queueSize?: number | undefined;
}

const schema = adaptiveOptions({
  maxLimit: s.positiveInteger(),
  maxFactor: s.optional(s.number({ from: 1.2 }), 5),
  tolerance: s.optional(s.number({ from: 1 }), 1.5),
  longWindows: s.optional(s.positiveInteger(), 600),
  smoothing: s.optional(s.ratioAboveZero(), 0.2),
  queueSize: s.optional(s.atLeastZero(), 4),
});

/** Windows until the long run is an exponential average; before, it is the mean. */
const warmUp = 10;

/** The gradient of a window with a drop in it: the lowest that latency alone can cause. */
const steepest = 0.5;

/**
 * `limit · clamp(tolerance · long / short, 0.5, 1) + queueSize`, approached by `smoothing`: `short` is the latency of
 * the window, `long` its exponential average, which falls by 5 % in every window in which it is more than twice as
 * slow. A window in which less than half of the limit was in use changes nothing but the averages.
 *
 * It needs no target. Under lasting saturation it has no fixed point: the long run learns that slow is normal, and the
 * limit drifts up to `maxLimit`. Differs from its source: a drop counts as the steepest gradient, and `maxFactor`
 * bounds the limit by its use. Source: Netflix concurrency-limits, Gradient2Limit; failsafe-go, the limit's maximum as
 * a factor of its use. @throws FlowConfigError
 */
export function gradient2(options: Gradient2Options): AdaptiveDetector {
  const { maxFactor, tolerance, longWindows, smoothing, queueSize, ...limits } = s.parse(schema, options, 'gradient2');
  const minLimit = limits.minLimit ?? Math.min(20, limits.maxLimit, limits.initialLimit ?? 20);
  let long = 0;
  let windows = 0;

  /** How much of the limit is left to a window, 0.5…1. */
  function gradientOf(short: number): number {
    const weight = windows < warmUp ? 1 / ++windows : 2 / (longWindows + 1);
    long += (short - long) * weight;
    const before = long;
    if (before > 2 * short) long *= 0.95;
    return short === 0 ? 1 : Math.max(steepest, Math.min(1, (tolerance * before) / short));
  }

  return adaptiveDetector('gradient2-detector', { ...limits, minLimit }, ({ limit, latency, drops, peakInFlight }) => {
    let gradient = latency === undefined ? steepest : gradientOf(latency);
    if (drops > 0) gradient = steepest;
    const isUsed = peakInFlight * 2 >= limit;
    const target = isUsed || drops > 0 ? limit * gradient + queueSize : limit;
    const peak = Math.max(1, peakInFlight);
    return Math.min(limit + (target - limit) * smoothing, peak * Math.max(1.2, maxFactor - Math.log10(peak)));
  });
}

export const gradient2Plugin: Definition<AdaptiveDetector> = define('gradient2-detector', schema, gradient2);
