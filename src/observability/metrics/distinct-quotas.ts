/**
 * Quotas as exporters tell them: one for each group, unit and span, and not more than a scrape can bear.
 *
 * Invariant: no two share all three, because that is an error; of several the one with the longest wait stands.
 */
import type { QuotaFigure } from '../../types/index.js';

/** Groups may be as many as endpoints and models. */
const mostQuotas = 1000;

export function distinctQuotas(all: readonly QuotaFigure[]): readonly QuotaFigure[] {
  const distinct = new Map<string, QuotaFigure>();
  for (const quota of all) {
    const key = JSON.stringify([quota.group, quota.unit, quota.perMs]);
    const known = distinct.get(key);
    if (known === undefined ? distinct.size < mostQuotas : quota.waitMs > known.waitMs) distinct.set(key, quota);
  }
  return [...distinct.values()];
}
