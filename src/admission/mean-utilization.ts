/** How full the pool is according to its reports, for policies that have thresholds of their own. */
import type { PoolView } from '../endpoints/endpoint.js';

/** Mean of `max(waiting / queueThreshold, kvCacheUsage / cacheThreshold)`; 1 without reports, which do not age here. */
export function meanUtilization({ endpoints }: PoolView, queueThreshold: number, cacheThreshold: number): number {
  if (endpoints.length === 0) return 1;
  let sum = 0;
  for (const { metrics } of endpoints) {
    if (metrics === undefined) sum++;
    else sum += Math.max(metrics.waitingQueueSize / queueThreshold, metrics.kvCacheUsage / cacheThreshold);
  }
  return sum / endpoints.length;
}
