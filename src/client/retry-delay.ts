/** Whether a response invites a retry, and when: the policy, without a request and without a timer. */
import { droppedReasonHeader } from '../base/headers/header-names.js';
import { type HeaderSource, headerValue } from '../base/headers/header-source.js';
import { isRefusal, retryAfterMs } from '../base/headers/retry-after.js';
import * as s from '../base/schema/schema.js';
import { type Backoff, fullJitter } from './backoff.js';

/** The part of a response that is read: of a web `Response`, or of another client's. */
export interface RefusedResponse {
  readonly status: number;
  readonly headers: HeaderSource;
}

export interface RetryPolicy {
  /** After refusals that cost no work, or do not say. @default fullJitter({ initialMs: 500, maxMs: 10_000 }) */
  rejected?: Backoff | undefined;
  /** After an eviction, which threw work away. @default fullJitter({ initialMs: 4000, maxMs: 30_000 }) */
  evicted?: Backoff | undefined;
  /** The longest `Retry-After` that is waited for, ms from 0 up. @default 60_000 */
  maxRetryAfterMs?: number | undefined;
  /** Source of the jitter, 0 <= value < 1. @default Math.random */
  random?: (() => number) | undefined;
  /** The time of day for a `Retry-After` that is a date. @default Date.now */
  nowEpochMs?: (() => number) | undefined;
}

/** Its elements, for options that hold a policy among others. */
export const retryPolicyShape: { readonly [K in keyof RetryPolicy]-?: s.Schema<RetryPolicy[K]> } = {
  rejected: s.optional(s.callable<Backoff>()),
  evicted: s.optional(s.callable<Backoff>()),
  maxRetryAfterMs: s.optional(s.numberFrom(0, 'ms')),
  random: s.optional(s.callable<() => number>()),
  nowEpochMs: s.optional(s.callable<() => number>()),
};

const soon = fullJitter({ initialMs: 500, maxMs: 10_000 });
const patient = fullJitter({ initialMs: 4000, maxMs: 30_000 });

/**
 * The pause in ms before the next attempt, after `attempt` (from 0); undefined for none. Only 429, 503 and 529 are
 * refusals. It is the told time plus a back-off. Source: the error contracts of llm-d and of Dynamo.
 */
export function retryDelayMs(
  { status, headers }: RefusedResponse,
  attempt: number,
  policy: RetryPolicy = {},
): number | undefined {
  const { rejected = soon, evicted = patient, maxRetryAfterMs = 60_000 } = policy;
  const { random = Math.random, nowEpochMs = Date.now } = policy;
  if (!isRefusal(status)) return undefined;
  const toldMs = retryAfterMs(headers, nowEpochMs) ?? 0;
  if (toldMs > maxRetryAfterMs) return undefined;
  const reason = headerValue(headers, [droppedReasonHeader]) ?? '';
  const backoff = /^evicted(-|$)/.test(reason) ? evicted : rejected;
  return toldMs + backoff(attempt, random);
}
