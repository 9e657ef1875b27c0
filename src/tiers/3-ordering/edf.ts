/** Earliest deadline first; where asked for, requests that cannot meet theirs any more make room for those that can. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { ItemView } from '../views.js';
import { FirstTokenTimes } from './first-token-times.js';
import type { OrderingPolicy } from './ordering-policy.js';

const type = 'edf-ordering-policy';

export interface EdfParameters {
  /**
   * Drops a request whose turn comes when it is too late for its first token: the deadline is then the end of its time
   * to wait, or its time-to-first-token target where that is earlier. @default false
   */
  dropInfeasible?: boolean | undefined;
  /**
   * The time that a first token takes, for `dropInfeasible`, such as '200ms'. @default learnt: half of the latest of
   * requests for the same model, and of about the same tokens, took longer
   */
  firstTokenAfter?: number | string | undefined;
  /** The deadline of requests without one, after their arrival, such as '5m'. @default none: they go last */
  maxWait?: number | string | undefined;
}

const parameters = s.object({
  dropInfeasible: s.optional(s.flag(), false),
  firstTokenAfter: s.optional(s.positiveDuration('200ms')),
  maxWait: s.optional(s.positiveDuration('5m')),
});

/**
 * Earliest `enqueuedAtMs + ttlMs` first; requests without a TTL last; ties in arrival order. O(log requests). With one
 * TTL for all requests this is first come, first served: it pays where requests carry their own `ttlMs`. With
 * `dropInfeasible` a request that will hardly have its first token in time is dropped when its turn comes
 * (`infeasible`), at O(log requests), so that an overloaded pool works on requests that can still make it. One object
 * learns for all its bands. Source: llm-d-router, edf-ordering-policy. Dropping: Haritsa, Carey and Livny, on firm
 * deadlines (1990s real-time databases). @throws FlowConfigError
 */
export function edf(options: EdfParameters = {}): OrderingPolicy {
  const { dropInfeasible, firstTokenAfter, maxWait = Infinity } = s.parse(parameters, options, 'edf');
  const deadlineOf = (item: ItemView): number => {
    const end = item.enqueuedAtMs + item.ttlMs;
    const deadline = dropInfeasible ? Math.min(end, item.ttftDeadlineAtMs) : end;
    return deadline === Infinity ? item.enqueuedAtMs + maxWait : deadline;
  };
  const compare = (a: ItemView, b: ItemView): number => {
    const deadlineA = deadlineOf(a);
    const deadlineB = deadlineOf(b);
    if (deadlineA !== deadlineB) return deadlineA < deadlineB ? -1 : 1;
    return a.enqueuedAtMs - b.enqueuedAtMs;
  };
  if (!dropInfeasible) return { type, compare };
  const learnt = new FirstTokenTimes();
  const isInfeasible = (item: ItemView, nowMs: number): boolean => {
    const deadline = Math.min(item.enqueuedAtMs + item.ttlMs, item.ttftDeadlineAtMs);
    return nowMs + (firstTokenAfter ?? learnt.expectedMs(item)) > deadline;
  };
  if (firstTokenAfter !== undefined) return { type, compare, isInfeasible };
  return { type, compare, isInfeasible, firstToken: (item, afterMs) => learnt.add(item, afterMs) };
}

export const edfPlugin: Definition<OrderingPolicy> = define(type, parameters, edf);
