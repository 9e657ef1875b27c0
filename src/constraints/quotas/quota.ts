/** One quota of a group: its window, what running requests hold of it, and what answers teach of its limit. */
import { type QuotaWindow, rounding, type Taking } from '../../base/quota-window.js';
import type { SeatView } from '../../gate/server-answer.js';
import type { QuotaUnit, ReportedQuota } from './rate-limit-headers.js';
import type { Amounts, RequestEstimate } from './request-estimate.js';

/** The part of a quota that one running request holds. */
export interface Hold {
  readonly quota: Quota;
  readonly taking: Taking;
}

/** What a running request holds. */
export interface Reserved {
  readonly holds: readonly Hold[];
  readonly averageKey: string;
  /** The status that its server answered; undefined before. */
  status: number | undefined;
}

export class Quota {
  readonly unit: QuotaUnit;
  readonly isLearnt: boolean;
  readonly window: QuotaWindow;
  /** The amount that running requests hold: estimates that are not settled. */
  reserved = 0;
  /** Holds that are not settled. */
  private holds = 0;
  private readonly mostLimit: number;
  /** The configured span, ms: the window may be taken for longer. Undefined for limits learnt from answers. */
  private readonly configuredPerMs: number | undefined;

  constructor(unit: QuotaUnit, window: QuotaWindow, configuredPerMs?: number) {
    this.unit = unit;
    this.window = window;
    this.configuredPerMs = configuredPerMs;
    this.isLearnt = configuredPerMs === undefined;
    this.mostLimit = this.isLearnt ? Infinity : window.limit;
  }

  /** The span of the limit, ms. */
  get perMs(): number {
    return this.configuredPerMs ?? this.window.perMs;
  }

  hold(amount: number, nowMs: number): Hold {
    const taking = this.window.take(amount, nowMs);
    this.reserved += taking.amount;
    this.holds++;
    return { quota: this, taking };
  }

  /** Makes a hold count for `amount`; it remains a hold. */
  change({ taking }: Hold, amount: number, nowMs: number): void {
    this.reserved -= taking.amount;
    this.window.settle(taking, amount, nowMs);
    this.reserved += taking.amount;
  }

  /** Ends a hold: `amount` is what it really was. */
  settle({ taking }: Hold, amount: number, nowMs: number): void {
    this.holds--;
    // The end of the last hold also removes rounding errors from the sum, so that an unused group can be removed.
    this.reserved = this.holds === 0 ? 0 : Math.max(this.reserved - taking.amount, 0);
    this.window.settle(taking, amount, nowMs);
  }

  /** Takes over an answer's figures: a limit, at most the configured one, and the units left, if they are fewer. */
  learn({ limit, remaining, resetInMs, perMs }: ReportedQuota, nowMs: number): void {
    const { window } = this;
    if (perMs !== undefined && this.isLearnt) window.perMs = perMs;
    if (limit !== undefined) this.resize(Math.min(limit, this.mostLimit));
    const foreign = remaining === undefined ? 0 : window.limit - window.used(nowMs) - remaining;
    if (remaining !== undefined && window.leaves !== undefined) window.leaves(remaining, nowMs);
    else if (foreign > window.limit * rounding) window.take(foreign, nowMs);
    // The end of a window of a minute does not lie hours away.
    if (resetInMs !== undefined && (this.isLearnt || resetInMs <= window.perMs))
      window.endsAt?.(nowMs + resetInMs, nowMs);
  }

  /** 1 when nothing is left; more while in debt. */
  fullness(nowMs: number): number {
    return this.window.used(nowMs) / this.window.burst;
  }

  private resize(limit: number): void {
    const { window } = this;
    if (limit === window.limit) return;
    const { burst } = window;
    const share = burst / window.limit;
    window.limit = limit;
    window.burst = Math.min(limit * share, limit);
  }
}

/** Makes holds count for what was reported. An answer may still grow; the prompt is known once it is reported. */
export function correctHolds(holds: readonly Hold[], actual: Amounts, nowMs: number): void {
  for (const hold of holds) {
    const { unit } = hold.quota;
    if (unit === 'requests') continue;
    const isFinal = unit === 'inputTokens' && actual.inputTokens > 0;
    if (isFinal || actual[unit] > hold.taking.amount) hold.quota.change(hold, actual[unit], nowMs);
  }
}

/**
 * Ends what a request holds. Without `actual` the estimate stands, and the answer is true. A refused request was
 * counted, and consumed nothing.
 */
export function settleHolds(
  { holds, averageKey, status }: Reserved,
  { isUnsent }: SeatView,
  actual: Amounts | undefined,
  estimate: RequestEstimate,
  nowMs: number,
): boolean {
  const told = actual !== undefined && actual.tokens > 0 ? actual : undefined;
  const isRefused = status !== undefined && status >= 400 && (status < 500 || status === 529);
  if (told !== undefined && told.outputTokens > 0) estimate.learn(averageKey, told.outputTokens);
  for (const hold of holds) {
    const { unit } = hold.quota;
    const { amount } = hold.taking;
    const units = unit === 'requests' ? amount : told ? told[unit] : isRefused ? 0 : amount;
    hold.quota.settle(hold, isUnsent ? 0 : units, nowMs);
  }
  return told === undefined && !isUnsent && !isRefused;
}
