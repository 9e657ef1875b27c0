/** One ceiling for every band. */
import { object, optional, type Schema } from '../../base/schema/element.js';
import { parse } from '../../base/schema/parse.js';
import { aboveZero } from '../../base/schema/types.js';
import type { UsageLimitPolicy } from './usage-limit-policy.js';

export interface StaticUsageLimitOptions {
  /** Saturation below which every band dispatches, above 0; more than 1 overcommits the pool. @default 1 */
  threshold?: number | undefined;
}

export const staticUsageLimitOptions: Schema<StaticUsageLimitOptions> = object({ threshold: optional(aboveZero()) });

/**
 * The same ceiling for all: strict priority alone decides who goes.
 * Differs from llm-d-router: a threshold of 0, which would block everything for ever, is an error.
 * Source: llm-d-router, static-usage-limit-policy.
 * @throws FlowConfigError
 */
export function staticUsageLimit(options: StaticUsageLimitOptions = {}): UsageLimitPolicy {
  const { threshold = 1 } = parse(staticUsageLimitOptions, options, 'staticUsageLimit');
  return {
    type: 'static-usage-limit-policy',
    constant: true,
    computeLimits(_saturation, _priorities, ceilings) {
      ceilings.fill(threshold);
    },
  };
}
