/** Earliest deadline first, the deadline being the end of the request's time to wait. */
import { noParameters } from '../../base/policy-definition.js';
import type { ItemView } from '../views.js';
import type { OrderingDefinition, OrderingPolicy } from './ordering-policy.js';

const type = 'edf-ordering-policy';

function compareDeadlines(a: ItemView, b: ItemView): number {
  const deadlineA = a.enqueuedAtMs + a.ttlMs;
  const deadlineB = b.enqueuedAtMs + b.ttlMs;
  if (deadlineA !== deadlineB) return deadlineA < deadlineB ? -1 : 1;
  return a.enqueuedAtMs - b.enqueuedAtMs;
}

/**
 * Earliest `enqueuedAtMs + ttlMs` first; requests without a TTL last; ties in arrival order. O(log requests).
 * With one TTL for all requests this is first come, first served: it pays where requests carry their own `ttlMs`.
 * Source: llm-d-router, edf-ordering-policy.
 */
export function edf(): OrderingPolicy {
  return { type, compare: compareDeadlines };
}

export const edfPlugin: OrderingDefinition = { kind: 'ordering', type, parameters: noParameters, create: edf };
