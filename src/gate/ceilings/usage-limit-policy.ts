/** Ceilings, the contract: up to which saturation may each band dispatch? */
import type { PluginShape } from '../../base/plugin-shape.js';

/**
 * Computes one ceiling for each band: the band dispatches while saturation < ceiling.
 * Contract: `priorities` come highest first; `ceilings` has the same length and arrives filled with 1, so that an
 * untouched entry leaves the gate as it is. 0 closes a band, values above 1 overcommit the pool. Ceilings must not rise
 * as priority falls: a rising one is lowered to its predecessor. NaN and exceptions are reported as plugin errors and
 * read as 1. Cost: called with every reading of the saturation, unless `constant`. State: its own.
 */
export interface UsageLimitPolicy {
  readonly type: string;
  computeLimits(saturation: number, priorities: readonly number[], ceilings: number[]): void;
  /** A request of this priority was dispatched: the pulse of policies that open now and then. */
  dispatched?(priority: number): void;
  /** True when the ceilings depend on the priorities alone: called again only when the set of bands changes. */
  readonly constant?: true;
  /** True when a closed band may open while the saturation stays the same: the gate then looks again by a timer. */
  readonly reopens?: true;
}

export const usageLimitPolicyShape: PluginShape<UsageLimitPolicy> = {
  noun: 'a usage-limit policy',
  example: 'staticUsageLimit()',
  required: ['computeLimits'],
  optional: ['dispatched'],
};
