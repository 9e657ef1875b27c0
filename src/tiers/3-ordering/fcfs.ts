/** First come, first served. */
import type { OrderingPolicy } from './ordering-policy.js';

/** Arrival order. O(1). Source: llm-d-router, fcfs-ordering-policy. */
export function fcfs(): OrderingPolicy {
  return { type: 'fcfs-ordering-policy', arrivalOrder: true, compare: (a, b) => a.sequence - b.sequence };
}
