/**
 * A bucket that leaks at `limit ÷ per`: the generic cell rate algorithm, in the notation of its level.
 *
 *     taken ──────────────────────────►     the level is what was taken and has not leaked yet;
 *     leaked ────────►                       what was taken first leaks first
 *
 * Invariant: over any span the amounts taken with room are at most burst + rate · span. A taking gives back at most the
 * part that has not leaked, because the rest has made room for others already.
 */
import { type QuotaWindow, rounding, type Taking } from './quota-window.js';

interface GcraTaking extends Taking {
  /** The end of the taking on the scale of all that was ever taken. */
  readonly end: number;
}

export class GcraWindow implements QuotaWindow {
  readonly kind = 'gcra';
  limit: number;
  burst: number;
  perMs: number;
  private taken = 0;
  private leaked = 0;
  private leakedAtMs = -Infinity;

  constructor(limit: number, perMs: number, burst: number) {
    this.limit = limit;
    this.perMs = perMs;
    this.burst = burst;
  }

  used(nowMs: number): number {
    this.leak(nowMs);
    return this.taken - this.leaked;
  }

  roomAtMs(amount: number, nowMs: number, returning = 0): number {
    const over = this.used(nowMs) - returning + Math.min(amount, this.burst) - this.burst;
    return over <= this.burst * rounding ? nowMs : nowMs + (over * this.perMs) / this.limit;
  }

  take(amount: number, nowMs: number): GcraTaking {
    this.leak(nowMs);
    this.taken += amount;
    return { amount, end: this.taken };
  }

  settle(taking: Taking, amount: number, nowMs: number): void {
    this.leak(nowMs);
    const excess = taking.amount - amount;
    if (excess < 0) this.taken -= excess;
    else this.giveBack(excess, nowMs, (taking as GcraTaking).end);
    taking.amount = amount;
  }

  /** Gives back the part of a taking that has not leaked; without its end, of any, as far as the level goes. */
  giveBack(amount: number, nowMs: number, end: number = this.taken): void {
    this.leak(nowMs);
    this.leaked += Math.max(0, Math.min(amount, end - this.leaked, this.taken - this.leaked));
  }

  freeAtMs(nowMs: number): number {
    return nowMs + (this.used(nowMs) * this.perMs) / this.limit;
  }

  private leak(nowMs: number): void {
    if (!(nowMs > this.leakedAtMs)) return;
    if (this.leakedAtMs > -Infinity)
      this.leaked = Math.min(this.taken, this.leaked + ((nowMs - this.leakedAtMs) * this.limit) / this.perMs);
    this.leakedAtMs = nowMs;
  }
}
