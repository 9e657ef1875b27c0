/** Tells whether the metrics of a model server are new enough to use. */
import type { EndpointView } from './endpoint.js';

/** True while the last report is at most `stalenessMs` old; the next one that was announced begins the count. */
export function hasFreshMetrics({ metrics, reportDueAtMs }: EndpointView, stalenessMs: number, nowMs: number): boolean {
  if (metrics === undefined) return false;
  return (
    nowMs - metrics.sampledAtMs <= stalenessMs || (reportDueAtMs !== undefined && nowMs - reportDueAtMs <= stalenessMs)
  );
}
