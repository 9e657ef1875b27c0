/** One ceiling for every band. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { UsageLimitPolicy } from './usage-limit-policy.js';

export interface StaticUsageLimitOptions {
  /** Saturation below which every band dispatches, above 0; more than 1 overcommits the pool. @default 1 */
  threshold?: number | undefined;
}

const type = 'static-usage-limit-policy';

const parameters = s.object({ threshold: s.optional(s.aboveZero(), 1) });

/**
 * One ceiling for all bands: strict priority alone decides. Differs from llm-d-router: a threshold of 0 is an error.
 * Source: llm-d-router, static-usage-limit-policy. @throws FlowConfigError
 */
export function staticUsageLimit(options: StaticUsageLimitOptions = {}): UsageLimitPolicy {
  const { threshold } = s.parse(parameters, options, 'staticUsageLimit');
  return {
    type,
    constant: true,
    computeLimits(_saturation, _priorities, ceilings) {
      ceilings.fill(threshold);
    },
  };
}

export const staticUsageLimitPlugin: Definition<UsageLimitPolicy> = define(type, parameters, staticUsageLimit);
