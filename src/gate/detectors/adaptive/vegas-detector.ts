/** The saturation by a limit that keeps an estimated number of requests waiting at the servers: a few, never none. */
import { type Definition, define } from '../../../base/policy-definition.js';
import * as s from '../../../base/schema/schema.js';
import type { AdaptiveDetector, AdaptiveLimitOptions } from './adaptive-limit.js';
import { adaptiveDetector, adaptiveOptions } from './adaptive-limit.js';

/** Parameters that a configuration file can hold. Limits are for the whole pool. */
export interface VegasParameters extends AdaptiveLimitOptions {
  /** Required, because nothing else bounds the limit if the fastest latency was measured under load. */
  maxLimit: number;
  /** The fastest latency is measured anew after so many windows for each request of the limit, above 0. @default 30 */
  probeMultiplier?: number | undefined;
}

export interface VegasOptions extends VegasParameters {
  /**
   * A source of numbers from 0 to less than 1. It makes gateways probe at different times: after (0.5…1) ·
   * `probeMultiplier` · limit. @default none, and then always after the longest
   */
  random?: (() => number) | undefined;
}

const shape = { maxLimit: s.positiveInteger(), probeMultiplier: s.optional(s.aboveZero(), 30) };

const optionsSchema = adaptiveOptions(s.withKeys(shape, { random: s.optional(s.randomSource(), () => 1) }));

/**
 * The queue at the servers is taken to be `⌈limit · (1 − fastest / latency)⌉`, with `fastest` the fastest window since
 * the last probe. With λ = max(1, ⌊log10 limit⌋): up to λ the limit rises by 6λ, below 3λ by λ; above 6λ, and after a
 * drop, it falls by λ. A window in which less than half of the limit was in use changes nothing.
 * It is for short calls of one length only. If latencies vary, the fastest is no measure of an idle pool, and the limit
 * stays far too low. If the fastest was measured under load, the limit is far too high. Source: L. S. Brakmo, L. L.
 * Peterson, "TCP Vegas", 1995; Netflix concurrency-limits, VegasLimit, which decides for each request.
 * @throws FlowConfigError
 */
export function vegas(options: VegasOptions): AdaptiveDetector {
  const { probeMultiplier, random, ...limits } = s.parse(optionsSchema, options, 'vegas');
  let fastest = Infinity;
  let windows = 0;
  let jitter = nextJitter();

  function nextJitter(): number {
    return 0.5 + random() / 2;
  }

  return adaptiveDetector('vegas-detector', limits, ({ limit, latency, drops, peakInFlight }) => {
    const step = Math.max(1, Math.floor(Math.log10(limit)));
    if (drops > 0) return limit - step;
    if (latency === undefined) return limit;
    windows++;
    const isProbe = windows >= jitter * probeMultiplier * limit;
    if (isProbe) {
      windows = 0;
      jitter = nextJitter();
    }
    if (isProbe || latency < fastest) {
      fastest = latency;
      return limit;
    }
    if (peakInFlight * 2 < limit) return limit;
    const queue = latency === 0 ? 0 : Math.ceil(limit * (1 - fastest / latency));
    if (queue <= step) return limit + 6 * step;
    if (queue < 3 * step) return limit + step;
    return queue > 6 * step ? limit - step : limit;
  });
}

export const vegasPlugin: Definition<AdaptiveDetector> = define('vegas-detector', adaptiveOptions(shape), vegas);
