/** A fetch that tries again while the gateway says so. */
import { realClock } from '../base/clock.js';
import { pause } from '../base/pause.js';
import { isReplayable } from '../base/request-body.js';
import * as s from '../base/schema/schema.js';
import type { Clock } from '../index.js';
import { awaitsTokenMs, type FirstTokenTimeouts, fetchToFirstToken } from './first-token.js';
import { type RetryBudget, retryBudget } from './retry-budget.js';
import { type RetryPolicy, retryDelayMs, retryPolicyShape } from './retry-delay.js';
import { discardBody, type Fetch, replayableInput, signalOf } from './sent-again.js';

/** Looked up for each call, so that a replaced one counts. */
export const platformFetch: Fetch = (input, init) => globalThis.fetch(input, init);

export interface RetryOptions extends RetryPolicy {
  /** How often a request is sent at most, an integer from 1 up. @default 4 */
  maxAttempts?: number | undefined;
  /** No retry begins later than this after the call, ms from 0 up. @default 120_000 */
  deadlineMs?: number | undefined;
  /** The limit on retries. @default retryBudget(), one for each fetch that is made here */
  budget?: RetryBudget | undefined;
  /** A stream without a content token in time is asked for again, within budget. @default none */
  timeouts?: FirstTokenTimeouts | undefined;
  /** @default the platform's monotonic clock */
  clock?: Clock | undefined;
}

const shape = {
  maxAttempts: s.optional(s.positiveInteger(), 4),
  deadlineMs: s.optional(s.numberFrom(0, 'ms'), 120_000),
  budget: s.optional(s.objectWith<RetryBudget>('an object with requested and tryRetry', 'requested', 'tryRetry')),
  timeouts: s.optional(
    s.object({ firstToken: s.optional(s.msAboveZero()), firstTokenByModel: s.optional(s.record(s.msAboveZero())) }),
    {},
  ),
  clock: s.optional(s.clock(), realClock),
} satisfies Record<Exclude<keyof RetryOptions, keyof RetryPolicy>, unknown>;

const optionsSchema = s.object(s.withKeys(retryPolicyShape, shape));

/**
 * `fetch`, sent again after 429, 503, 529, see `retryDelayMs`, and a late first token, see `timeouts`; then the last
 * response stands. Not retried: other statuses, network errors, broken or streamed bodies. @throws FlowConfigError
 */
export function retrying(fetch: Fetch, options: RetryOptions = {}): Fetch {
  const settings = s.parse(optionsSchema, options, 'retrying options');
  const { maxAttempts, deadlineMs, budget = retryBudget(), timeouts, clock } = settings;

  return async function fetchWithRetries(input, init) {
    const mostAttempts = isReplayable(init?.body) ? maxAttempts : 1;
    const lastAtMs = clock.now() + deadlineMs;
    budget.requested();
    for (let attempt = 0; ; attempt++) {
      const isLast = attempt + 1 >= mostAttempts;
      const tokenMs = isLast ? Infinity : awaitsTokenMs(timeouts, init?.body);
      const sent = isLast ? input : replayableInput(input, init);
      const mayGiveUp = (): boolean => clock.now() <= lastAtMs && budget.tryRetry(clock.now());
      const response = await fetchToFirstToken(fetch, sent, init, tokenMs, clock, mayGiveUp);
      if (response === undefined) continue;
      const delayMs = isLast ? undefined : retryDelayMs(response, attempt, options);
      const nowMs = clock.now();
      if (delayMs === undefined || nowMs + delayMs > lastAtMs || !budget.tryRetry(nowMs)) return response;
      const stop = discardBody(response);
      try {
        await pause(delayMs, clock, signalOf(input, init));
      } finally {
        stop();
      }
    }
  };
}

/** The platform's fetch with retries. @example new OpenAI({ baseURL, fetch: retryingFetch(), maxRetries: 0 }) */
export function retryingFetch(options: RetryOptions = {}): Fetch {
  return retrying(platformFetch, options);
}
