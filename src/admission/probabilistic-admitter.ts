/** Rejects some sheddable requests before the pool is full: the fuller the pool, the fewer come in. */
import { type Definition, define } from '../base/policy-definition.js';
import * as s from '../base/schema/schema.js';
import { seededRandom } from '../base/seeded-random.js';
import type { AdmissionPolicy } from './admission-policy.js';
import { meanUtilization } from './mean-utilization.js';

/** Parameters that a configuration file can hold. */
export interface ProbabilisticAdmitterParameters {
  /** Requests waiting in a server's own queue at which it is full, above 0. @default 5 */
  queueDepthThreshold?: number | undefined;
  /** Share of the KV cache at which a server is full, above 0. @default 0.8 */
  kvCacheUtilThreshold?: number | undefined;
  /** How sharply rejections set in, above 0. @default 5 */
  power?: number | undefined;
  /** How early they set in, above 0. @default 300 */
  k?: number | undefined;
}

export interface ProbabilisticAdmitterOptions extends ProbabilisticAdmitterParameters {
  /** A source of numbers from 0 to less than 1. Required: nothing here is random by itself. */
  random: () => number;
}

const shape = {
  queueDepthThreshold: s.optional(s.aboveZero(), 5),
  kvCacheUtilThreshold: s.optional(s.aboveZero(), 0.8),
  power: s.optional(s.aboveZero(), 5),
  k: s.optional(s.aboveZero(), 300),
};

const optionsSchema = s.object(s.withKeys(shape, { random: s.randomSource() }));

/**
 * Rejects priority < 0 with the probability `min(1, k · saturation^power)`. The saturation is the mean over endpoints
 * of `max(waiting / queueDepthThreshold, kvCacheUsage / kvCacheUtilThreshold)`; an endpoint without reports counts 1.
 * Priority ≥ 0 comes in, and an empty pool rejects no request. O(endpoints), for sheddable requests only. Differs from
 * llm-d-router: a rejection is a 429, not an internal error. Source: llm-d-router, probabilistic-admitter.
 * @throws FlowConfigError
 */
export function probabilisticAdmitter(options: ProbabilisticAdmitterOptions): AdmissionPolicy {
  const { power, k, random, ...thresholds } = s.parse(optionsSchema, options, 'probabilisticAdmitter');
  return {
    type: 'probabilistic-admitter',
    admit(_request, { priority }, { pool }) {
      if (priority >= 0 || pool.endpoints.length === 0) return 'admit';
      const saturation = meanUtilization(pool, thresholds.queueDepthThreshold, thresholds.kvCacheUtilThreshold);
      const probability = Math.min(1, k * saturation ** power);
      if (random() >= probability) return 'admit';
      const percent = (100 * probability).toFixed(1);
      return { reason: `saturation ${saturation.toFixed(2)}: ${percent} % of sheddable requests are rejected` };
    },
  };
}

/** A file cannot hold a source of randomness. With a fixed seed the same file decides the same. */
export const probabilisticAdmitterPlugin: Definition<AdmissionPolicy> = define(
  'probabilistic-admitter',
  s.object(shape),
  (parameters: ProbabilisticAdmitterParameters) => probabilisticAdmitter({ ...parameters, random: seededRandom(1) }),
);
