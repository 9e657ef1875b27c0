/** Sheddable requests are thinned out before the pool is full: the fuller, the fewer come in. */
import { object, optional, type Schema, value } from '../base/schema/element.js';
import { parse } from '../base/schema/parse.js';
import { aboveZero } from '../base/schema/types.js';
import type { AdmissionPolicy } from './admission-policy.js';
import { meanUtilization } from './mean-utilization.js';

/** Parameters that a configuration file can hold. */
export interface ProbabilisticAdmitterParameters {
  /** Requests waiting in a server's own queue at which it is full, above 0. @default 5 */
  queueDepthThreshold?: number | undefined;
  /** Share of the KV cache at which a server is full, above 0. @default 0.8 */
  kvCacheUtilThreshold?: number | undefined;
  /** How sharply refusals set in, above 0. @default 5 */
  power?: number | undefined;
  /** How early they set in, above 0. @default 300 */
  k?: number | undefined;
}

export interface ProbabilisticAdmitterOptions extends ProbabilisticAdmitterParameters {
  /** A source of numbers from 0 to less than 1. Required: nothing here is random by itself. */
  random: () => number;
}

const parameters = {
  queueDepthThreshold: optional(aboveZero()),
  kvCacheUtilThreshold: optional(aboveZero()),
  power: optional(aboveZero()),
  k: optional(aboveZero()),
};

export const probabilisticAdmitterParameters: Schema<ProbabilisticAdmitterParameters> = object(parameters);

const probabilisticAdmitterOptions: Schema<ProbabilisticAdmitterOptions> = object({
  ...parameters,
  random: value('a function that returns a number from 0 to less than 1', (given): given is () => number => typeof given === 'function'),
});

/**
 * Refuses priority < 0 with the probability `min(1, k · saturation^power)`, the saturation as the mean over endpoints of
 * `max(waiting / queueDepthThreshold, kvCacheUsage / kvCacheUtilThreshold)`, an endpoint without reports counting 1. Priority ≥ 0
 * comes in, and an empty pool refuses nobody. O(endpoints), for sheddable requests only.
 * Differs from llm-d-router: a refusal is a 429, not an internal error.
 * Source: llm-d-router, probabilistic-admitter.
 * @throws FlowConfigError
 */
export function probabilisticAdmitter(options: ProbabilisticAdmitterOptions): AdmissionPolicy {
  const {
    queueDepthThreshold = 5,
    kvCacheUtilThreshold = 0.8,
    power = 5,
    k = 300,
    random,
  } = parse(probabilisticAdmitterOptions, options, 'probabilisticAdmitter');
  return {
    type: 'probabilistic-admitter',
    admit(_request, { priority }, { pool }) {
      if (priority >= 0 || pool.endpoints.length === 0) return 'admit';
      const saturation = meanUtilization(pool, queueDepthThreshold, kvCacheUtilThreshold);
      const probability = Math.min(1, k * saturation ** power);
      if (random() >= probability) return 'admit';
      return { reason: `saturation ${saturation.toFixed(2)}: ${(100 * probability).toFixed(1)} % of sheddable requests are refused` };
    },
  };
}
