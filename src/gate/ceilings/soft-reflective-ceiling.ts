/** Ceilings that mirror the saturation: the fuller the pool, the rarer the turns of lower bands. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { UsageLimitPolicy } from './usage-limit-policy.js';

const type = 'soft-reflective-ceiling-policy';

const schema: s.Schema<object> = s.element((candidate, report) => {
  if (!s.isRecord(candidate)) return report('an object without keys');
  for (const key of Object.keys(candidate)) report(`nothing: ${type} takes no parameters`, [key]);
  return candidate;
});

/** Mirrors the saturation for the band of rank `index` (0 is the highest): the band is gated from there up. */
export function reflectiveCeiling(index: number, saturation: number, bands: number): number {
  return bands < 2 ? 1 : 1 - (index * saturation) / (bands - 1);
}

/** One of this many releases is for gated bands, at a saturation below 1. */
export function openingPeriod(saturation: number): number {
  // The small term is the reference's.
  return Math.max(1, Math.round(saturation / (1 - saturation + 1e-9)));
}

/**
 * The highest band is never gated. The band of rank i is gated from a saturation of `1 − i·s/(bands − 1)` up; gated
 * bands open together for one release in every `openingPeriod(s)`, and not at all when the pool is full. O(bands).
 * The rhythm counts releases of requests, of any band, while the lowest band could be gated; looking twice between two
 * releases finds the same. There is one exception, so that gated bands cannot be stuck when no other band sends. After
 * `openingPeriod(s)` + 1 fruitless looks in a row, without a release between them, the gated bands are open for one
 * release. Differs from llm-d-router: there every turn of the dispatch loop counts, so that the rhythm depends on how
 * often it turns. Source: llm-d-router, soft-reflective-ceiling-policy.
 */
export function softReflectiveCeiling(): UsageLimitPolicy {
  /** Requests released while the lowest band could be gated. */
  let released = 0;
  let canGate = false;
  /** Looks since the last release that found the gated bands closed. */
  let fruitless = 0;

  function opens(period: number): boolean {
    if ((released + 1) % period === 0 || fruitless >= period) return true;
    fruitless++;
    return false;
  }

  return {
    type,
    reopens: true,
    computeLimits(saturation, priorities, ceilings) {
      const bands = priorities.length;
      canGate = saturation < 1 && saturation >= reflectiveCeiling(bands - 1, saturation, bands);
      const gated = canGate && opens(openingPeriod(saturation)) ? 1 : 0;
      for (let i = 0; i < bands; i++)
        ceilings[i] = i === 0 || saturation < reflectiveCeiling(i, saturation, bands) ? 1 : gated;
    },
    dispatched() {
      fruitless = 0;
      if (canGate) released++;
    },
  };
}

export const softReflectiveCeilingPlugin: Definition<UsageLimitPolicy> = define(type, schema, softReflectiveCeiling);
