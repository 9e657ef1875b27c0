/**
 * The part of a quota that a replica takes by itself while the store is away.
 *
 * Invariant: it begins with this part of what was used when the store went. When the store is back, it is charged at
 * most a burst, however long it was away.
 */
import type { QuotaTerms, QuotaWindow } from '../../index.js';

/** The amount that one sale took. */
export interface FallbackTaking {
  amount: number;
}

export class FallbackShare {
  private readonly part: number;
  /** Undefined: no limit. */
  private readonly window: QuotaWindow | undefined;

  /** `part` of the quota, 0…1, or Infinity for no limit; `used` is what all replicas had used. */
  constructor(terms: QuotaTerms, part: number, used: number, nowMs: number) {
    this.part = part;
    this.window = part === Number.POSITIVE_INFINITY ? undefined : terms.local(part);
    if (used * part > 0) this.window?.take(used * part, nowMs);
  }

  /** Sells up to `most`, and nothing if there is less than `least`. */
  sell(least: number, most: number, nowMs: number): FallbackTaking | undefined {
    const { window } = this;
    const room = window === undefined ? most : Math.max(0, window.burst - window.used(nowMs));
    const amount = Math.min(most, room);
    if (!(amount > 0) || amount < least) return undefined;
    return this.take(amount, nowMs);
  }

  /** Takes whether there is room or not. */
  take(amount: number, nowMs: number): FallbackTaking {
    return this.window?.take(amount, nowMs) ?? { amount };
  }

  takeBack(taking: FallbackTaking, amount: number, nowMs: number): void {
    const left = Math.max(0, taking.amount - amount);
    if (this.window === undefined) taking.amount = left;
    else this.window.settle(taking, left, nowMs);
  }

  /** When `amount` fits, if nothing else is taken. */
  roomAtMs(amount: number, nowMs: number): number {
    return this.window?.roomAtMs(amount, nowMs) ?? nowMs;
  }

  /** The amount that all replicas have used, if each took as much as this one. */
  usedByAll(nowMs: number): number {
    return this.window === undefined || this.part === 0 ? 0 : this.window.used(nowMs) / this.part;
  }
}
