/**
 * A rate with bursts: every request costs tokens, and tokens come back at a constant rate up to a capacity.
 * Invariant: over any span what was admitted costs at most capacity + refill · span, plus what settling charged later.
 */
import { GcraWindow } from '../base/gcra-window.js';
import { type Definition, define } from '../base/policy-definition.js';
import { requestField } from '../base/request-field.js';
import * as s from '../base/schema/schema.js';
import type { Usage } from '../tiers/views.js';
import type { AdmissionKey, AdmissionPolicy } from './admission-policy.js';

/** The field of a request that the default cost reads. */
export interface TokenCosted {
  readonly tokens?: number | undefined;
}

/** Parameters that a configuration file can hold. */
export interface TokenBucketParameters {
  /** Tokens that the full bucket holds, above 0; it starts full. @default 10,000 */
  capacity?: number | undefined;
  /** Tokens that come back each second, above 0. @default 1000 */
  refillPerSecond?: number | undefined;
  /** Too large for the bucket: `refuse` for ever, or `borrow`: admit it when that is full. @default 'refuse' */
  oversized?: 'refuse' | 'borrow' | undefined;
  /**
   * Whether a request that ran is charged for what it reported instead of its estimate; a function says what a report
   * costs. A report of no tokens at all changes nothing. @default false; true: prompt + completion tokens
   */
  settle?: boolean | ((usage: Usage) => number) | undefined;
}

export interface TokenBucketOptions<R = unknown> extends TokenBucketParameters {
  /** Tokens that a request costs, 0 or more. Pure, because it is called again at its return. @default `tokens`, or 0 */
  cost?: ((request: R, key: AdmissionKey) => number) | undefined;
}

/** A bucket that also tells what it holds. */
export interface TokenBucket<R = unknown> extends AdmissionPolicy<R> {
  /** Tokens as of the last decision or end of a request; negative while in debt. */
  readonly tokens: number;
}

function isSettlement(given: unknown): given is boolean | ((usage: Usage) => number) {
  return typeof given === 'boolean' || typeof given === 'function';
}

const shape = {
  capacity: s.optional(s.aboveZero(), 10_000),
  refillPerSecond: s.optional(s.aboveZero(), 1000),
  oversized: s.optional(s.oneOf('refuse', 'borrow'), 'refuse'),
  settle: s.optional(s.value('true, false, or a function of the usage', isSettlement), false),
};

/**
 * Admits while the bucket holds the cost of the request, whatever its priority. A rejection consumes nothing and says
 * when the bucket will hold enough. A request that never ran gets its tokens back. O(1). Source: BLIS, token-bucket;
 * settling and borrowing as in GCRA, of which this is the other notation. @throws FlowConfigError
 */
export function tokenBucket<R = TokenCosted>(options: TokenBucketOptions<R> = {}): TokenBucket<R> {
  const expected = 'a function of request and key that returns tokens';
  const cost = s.callable<NonNullable<TokenBucketOptions<R>['cost']>>(expected);
  const schema = s.object({ ...shape, cost: s.optional(cost, bookedTokens) });
  const { capacity, refillPerSecond, oversized, settle, cost: costOf } = s.parse(schema, options, 'tokenBucket');
  const actualCost = typeof settle === 'function' ? settle : totalTokens;
  const bucket = new GcraWindow(refillPerSecond, 1000, capacity);
  return {
    type: 'token-bucket',
    get tokens() {
      return capacity - bucket.used(-Infinity);
    },
    admit(request, key, { nowMs }) {
      const left = capacity - bucket.used(nowMs);
      const cost = checked(costOf(request, key));
      const isTooLarge = cost > capacity && oversized === 'refuse';
      const roomAtMs = isTooLarge ? Infinity : bucket.roomAtMs(cost, nowMs);
      if (roomAtMs <= nowMs) {
        bucket.take(cost, nowMs);
        return 'admit';
      }
      const reason = `the request costs ${cost} tokens of ${Math.floor(Math.max(left, 0))} left`;
      if (isTooLarge) return { reason: `${reason}; the bucket holds ${capacity}` };
      return { reason, retryAfterMs: Math.ceil(roomAtMs - nowMs) };
    },
    released(request, key, usage, nowMs = -Infinity) {
      const booked = checked(costOf(request, key));
      // Tokens that came back before the end fill the bucket first: a later charge must find it.
      bucket.used(nowMs);
      if (usage !== undefined && (settle === false || totalTokens(usage) === 0)) return;
      const excess = booked - (usage === undefined ? 0 : checked(actualCost(usage)));
      if (excess > 0) bucket.giveBack(excess, nowMs);
      else bucket.take(-excess, nowMs);
    },
  };
}

function bookedTokens(request: unknown): number {
  const tokens = requestField(request, 'tokens');
  return typeof tokens === 'number' ? tokens : 0;
}

function totalTokens({ promptTokens, completionTokens }: Usage): number {
  return promptTokens + completionTokens;
}

/** NaN would poison the balance for ever. */
function checked(cost: number): number {
  if (cost >= 0 && cost < Infinity) return cost;
  throw new RangeError(`a cost must be a finite number from 0 up; got ${String(cost)}`);
}

export const tokenBucketPlugin: Definition<AdmissionPolicy> = define('token-bucket', s.object(shape), tokenBucket);
