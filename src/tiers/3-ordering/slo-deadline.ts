/** Earliest time-to-first-token deadline first. */
import type { OrderingPolicy } from './ordering-policy.js';

/**
 * Earliest `receivedAtMs + sloTtftMs` first (the `x-slo-ttft-ms` header of HTTP requests); ties by `receivedAtMs`, then
 * arrival. Requests without a target go last and can starve while others keep coming: give every request of such a band
 * a target or a TTL. O(log requests). Source: llm-d-router, slo-deadline-ordering-policy.
 */
export function sloDeadline(): OrderingPolicy {
  return {
    type: 'slo-deadline-ordering-policy',
    compare(a, b) {
      if (a.ttftDeadlineAtMs !== b.ttftDeadlineAtMs) return a.ttftDeadlineAtMs < b.ttftDeadlineAtMs ? -1 : 1;
      return a.receivedAtMs - b.receivedAtMs;
    },
  };
}
