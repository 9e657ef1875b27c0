/** Whether what is known of a model server is new enough to go by. */
import type { EndpointView } from './endpoint.js';

/**
 * True while the last report is at most `stalenessMs` old, counted from the instant at which the reporter promised the
 * next one, where that is later: who asks an idle server once a second has not lost it in between.
 */
export function hasFreshMetrics({ metrics, reportDueAtMs }: EndpointView, stalenessMs: number, nowMs: number): boolean {
  if (metrics === undefined) return false;
  return (
    nowMs - metrics.sampledAtMs <= stalenessMs || (reportDueAtMs !== undefined && nowMs - reportDueAtMs <= stalenessMs)
  );
}
