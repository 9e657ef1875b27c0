/** Whether a response invites a retry, when, and how long to wait when nobody says: without a request, without a timer. */
import { droppedReasonHeader } from '../base/headers/header-names.js';
import { type HeaderSource, headerValue } from '../base/headers/header-source.js';
import { isRefusal, retryAfterMs } from '../base/headers/retry-after.js';
import * as s from '../base/schema/schema.js';
import { msAboveZero, numberFrom } from './option-schemas.js';

/** The pause in ms after `attempt` failed; attempts count from 0. `random` is a source of 0 <= value < 1. */
export type Backoff = (attempt: number, random: () => number) => number;

export interface FullJitterOptions {
  /** Longest pause after the first attempt, ms above 0; it doubles with every attempt. */
  initialMs: number;
  /** Longest pause of all, ms above 0. */
  maxMs: number;
}

const jitterOptions = s.object({ initialMs: msAboveZero(), maxMs: msAboveZero() });

/**
 * A random pause below a bound that doubles, so that refused clients do not come back together: `random() · min(maxMs,
 * initialMs · 2^attempt)`. Source: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015: full jitter.
 * @throws FlowConfigError
 */
export function fullJitter(options: FullJitterOptions): Backoff {
  const { initialMs, maxMs } = s.parse(jitterOptions, options, 'fullJitter');
  return (attempt, random) => random() * Math.min(maxMs, initialMs * 2 ** attempt);
}

/** Dynamo's guidance for clients, request rejection: `min(60, 2^attempt + random())` seconds; give it 5 attempts. */
export function dynamoBackoff(): Backoff {
  return (attempt, random) => Math.min(60, 2 ** attempt + random()) * 1000;
}

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
  /** The longest `Retry-After` that is waited for, ms from 0 up; a longer one goes to the caller. @default 60_000 */
  maxRetryAfterMs?: number | undefined;
  /** Source of the jitter, 0 <= value < 1. @default Math.random */
  random?: (() => number) | undefined;
  /** The time of day for a `Retry-After` that is a date, when the response has no `Date`. @default Date.now */
  nowEpochMs?: (() => number) | undefined;
}

/** Its elements, for options that hold a policy among others. */
export const retryPolicyShape: Readonly<Record<keyof RetryPolicy, s.Schema<unknown>>> = {
  rejected: s.optional(s.callable()),
  evicted: s.optional(s.callable()),
  maxRetryAfterMs: s.optional(numberFrom(0, 'ms')),
  random: s.optional(s.callable()),
  nowEpochMs: s.optional(s.callable()),
};

const soon = fullJitter({ initialMs: 500, maxMs: 10_000 });
const patient = fullJitter({ initialMs: 4000, maxMs: 30_000 });

/**
 * The pause in ms before the next attempt, after `attempt` (from 0) got this answer; undefined for none. Only 429, 503
 * and 529 are refusals by contract. It is the time of `retry-after-ms` or `Retry-After`, plus a back-off, so that
 * clients do not all come back in the same second: `evicted` when `x-llm-d-request-dropped-reason` says so, else
 * `rejected`. Source: the error contracts of llm-d and of Dynamo.
 */
export function retryDelayMs(
  { status, headers }: RefusedResponse,
  attempt: number,
  policy: RetryPolicy = {},
): number | undefined {
  const {
    rejected = soon,
    evicted = patient,
    maxRetryAfterMs = 60_000,
    random = Math.random,
    nowEpochMs = Date.now,
  } = policy;
  if (!isRefusal(status)) return undefined;
  const toldMs = retryAfterMs(headers, nowEpochMs) ?? 0;
  if (toldMs > maxRetryAfterMs) return undefined;
  const reason = headerValue(headers, [droppedReasonHeader]) ?? '';
  const backoff = /^evicted(-|$)/.test(reason) ? evicted : rejected;
  return toldMs + backoff(attempt, random);
}
