/** Serves the whole band in the order of its ordering policy, without regard to flows. */
import type { FairnessPolicy } from './fairness-policy.js';

/**
 * The band as one queue: flows are labels, and the best request of the band under its ordering policy goes next. O(1)
 * with `fcfs()`, O(log requests) otherwise. Differs from llm-d-router: no scan of the flows' heads, because one queue
 * holds them all; with `sloDeadline()` the request with the earliest deadline goes, not the best head among flows.
 * Source: llm-d-router, global-strict-fairness-policy.
 */
export function globalStrict(): FairnessPolicy {
  return { type: 'global-strict-fairness-policy', sharedQueue: true };
}
