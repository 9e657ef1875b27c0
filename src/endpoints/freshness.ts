/** Tells whether the metrics of a model server are new enough to use. */
import type { EndpointView } from './endpoint.js';

/**
 * True while the last report is at most `stalenessMs` old. If the reporter announced a later instant for the next
 * report, the age counts from there: a scraper that asks an idle server once a second has not lost it in between.
 */
export function hasFreshMetrics({ metrics, reportDueAtMs }: EndpointView, stalenessMs: number, nowMs: number): boolean {
  if (metrics === undefined) return false;
  return (
    nowMs - metrics.sampledAtMs <= stalenessMs || (reportDueAtMs !== undefined && nowMs - reportDueAtMs <= stalenessMs)
  );
}
