/** Ceilings that fall with priority: capacity that lower bands must leave to higher ones. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { UsageLimitPolicy } from './usage-limit-policy.js';

export interface PriorityHoldbackOptions {
  /** How ceilings fall from the highest band to the lowest. @default 'linear' */
  shape?: 'linear' | undefined;
  /** Fall by the same step from band to band, or in proportion to the numbers of the priorities. @default 'rank' */
  domain?: 'rank' | 'value' | undefined;
  /** Ceiling of the lowest band, from 0 up and below `maxCeiling`. 0 closes it for good. */
  minCeiling: number;
  /** Ceiling of the highest band, above 0 and at most 1. @default 1 */
  maxCeiling?: number | undefined;
}

/** A required share below 1; the message names the option if it is missing. */
function belowOne(name: string): s.Schema<number> {
  return s.element((candidate, report) => {
    if (typeof candidate === 'number' && candidate >= 0 && candidate < 1) return candidate + 0;
    report(`a number from 0 up, below 1${candidate === undefined ? ` (${name} is required)` : ''}`);
    return NaN;
  });
}

const typeOfHoldback = 'priority-holdback-policy';
const holdback = s.object(
  {
    shape: s.optional(s.oneOf('linear')),
    domain: s.optional(s.oneOf('rank', 'value'), 'rank'),
    minCeiling: /* @__PURE__ */ belowOne('minCeiling'),
    maxCeiling: s.optional(s.ratioAboveZero(), 1),
  },
  ({ minCeiling, maxCeiling }, report) => {
    if (minCeiling >= maxCeiling) report(`a number below maxCeiling (${maxCeiling})`, ['minCeiling']);
  },
);

/**
 * The highest band may fill the pool to `maxCeiling`, the lowest to `minCeiling`, those between to something between; a
 * single band, or bands of equal priority under `value`, to `maxCeiling`. The ranked bands are the configured ones,
 * used or not, and those with requests waiting. Independent of saturation. O(bands) when the set of bands changes,
 * nothing otherwise. Source: llm-d-router, priority-holdback-policy. @throws FlowConfigError
 */
export function priorityHoldback(options: PriorityHoldbackOptions): UsageLimitPolicy {
  const { domain, minCeiling, maxCeiling } = s.parse(holdback, options, 'priorityHoldback');
  const fill = domain === 'rank' ? fallByRank : fallByValue;
  return {
    type: typeOfHoldback,
    constant: true,
    computeLimits: (_saturation, priorities, ceilings) => fill(priorities, ceilings, minCeiling, maxCeiling),
  };
}

export interface InterpolatedUsageLimitOptions {
  /** Ceiling of the lowest band, above 0 and at most 1. @default 1 */
  threshold?: number | undefined;
}

const interpolatedParameters = s.object({ threshold: s.optional(s.ratioAboveZero(), 1) });

/**
 * Ceilings from 1 for the highest band down to `threshold` for the lowest, by rank: `priorityHoldback` with one number
 * to set. At the default of 1 all bands share one gate. Differs from BLIS: bands that are neither configured nor in use
 * do not count, so that a band of long ago narrows no other. Source: BLIS, the usage limit threshold of the gateway
 * queue. @throws FlowConfigError
 */
export function interpolatedUsageLimit(options: InterpolatedUsageLimitOptions = {}): UsageLimitPolicy {
  const { threshold } = s.parse(interpolatedParameters, options, 'interpolatedUsageLimit');
  return {
    type: 'interpolated-usage-limit-policy',
    constant: true,
    computeLimits: (_saturation, priorities, ceilings) => fallByRank(priorities, ceilings, threshold, 1),
  };
}

function fallByRank(priorities: readonly number[], ceilings: number[], min: number, max: number): void {
  const steps = Math.max(priorities.length - 1, 1);
  for (let i = 0; i < priorities.length; i++) ceilings[i] = max - (i * (max - min)) / steps;
}

function fallByValue(priorities: readonly number[], ceilings: number[], min: number, max: number): void {
  const lowest = priorities.at(-1) ?? 0;
  const range = (priorities[0] ?? 0) - lowest;
  for (let i = 0; i < priorities.length; i++)
    ceilings[i] = range === 0 ? max : min + (((priorities[i] as number) - lowest) / range) * (max - min);
}

export const priorityHoldbackPlugin: Definition<UsageLimitPolicy> = define(typeOfHoldback, holdback, priorityHoldback);

export const interpolatedUsageLimitPlugin: Definition<UsageLimitPolicy> = define(
  'interpolated-usage-limit-policy',
  interpolatedParameters,
  interpolatedUsageLimit,
);
