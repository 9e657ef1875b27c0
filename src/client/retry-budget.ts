/** What retries may cost together. Invariant: retries <= capacity + ratio · requests + minPerSecond · seconds. */
import * as s from '../base/schema/schema.js';

export interface RetryBudgetOptions {
  /** Retries that every request earns, from 0 up. @default 0.1: one retry for ten requests */
  ratio?: number | undefined;
  /** Retries that every second earns, from 0 up. @default 1 */
  minPerSecond?: number | undefined;
  /** Retries that can be saved up, 1 or more, and are there at the start. @default 10 */
  capacity?: number | undefined;
}

const optionsSchema = s.object({
  ratio: s.optional(s.numberFrom(0), 0.1),
  minPerSecond: s.optional(s.number({ from: 0 }), 1),
  capacity: s.optional(s.numberFrom(1), 10),
});

/** One budget may serve several fetches that go to the same gateway. */
export interface RetryBudget {
  /** A request is sent for the first time. */
  requested(): void;
  /** Takes one retry, and says whether there was one left. */
  tryRetry(nowMs: number): boolean;
}

/** Ten times a tenth must make one. */
const rounding = 1e-9;

/** A token bucket of retries. O(1). Source: Finagle, RetryBudget; gRPC A6 (fixed capacity). @throws FlowConfigError */
export function retryBudget(options: RetryBudgetOptions = {}): RetryBudget {
  const { ratio, minPerSecond, capacity } = s.parse(optionsSchema, options, 'retryBudget');
  let tokens = capacity;
  let refilledAtMs = Infinity;

  return {
    requested() {
      tokens = Math.min(capacity, tokens + ratio);
    },
    tryRetry(nowMs) {
      const elapsedMs = Math.max(0, nowMs - refilledAtMs);
      tokens = Math.min(capacity, tokens + (elapsedMs * minPerSecond) / 1000);
      refilledAtMs = nowMs;
      if (tokens + rounding < 1) return false;
      tokens -= 1;
      return true;
    },
  };
}
