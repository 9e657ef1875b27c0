/**
 * A limit that starts anew at the end of each window. A window begins with the first taking after the last one ended.
 * It ends `per` later, or when the provider says. Invariant: what is taken with room in one window is at most the
 * limit. The debt of a window is taken from the next one.
 */
import { type QuotaWindow, rounding, type Taking, WholeWindow } from '../../base/quota-window.js';

interface FixedTaking extends Taking {
  /** The window that it was taken in. */
  readonly window: number;
}

export class FixedWindow extends WholeWindow implements QuotaWindow {
  readonly kind = 'fixed';
  private taken = 0;
  /** Rises with every window. */
  private window = 0;
  private endMs = -Infinity;
  private isEndTold = false;

  get isGuessing(): boolean {
    return !this.isEndTold;
  }

  used(nowMs: number): number {
    this.end(nowMs);
    return this.taken;
  }

  roomAtMs(amount: number, nowMs: number, returning = 0): number {
    const over = this.used(nowMs) - returning + Math.min(amount, this.limit) - this.limit;
    if (over <= this.limit * rounding) return nowMs;
    return this.endMs + (Math.ceil(over / this.limit - rounding) - 1) * this.perMs;
  }

  take(amount: number, nowMs: number): FixedTaking {
    this.begin(nowMs);
    this.taken += amount;
    return { amount, window: this.window };
  }

  settle(taking: Taking, amount: number, nowMs: number): void {
    const excess = taking.amount - amount;
    taking.amount = amount;
    if (excess < 0) this.begin(nowMs);
    else this.end(nowMs);
    if (excess < 0) this.taken -= excess;
    else if ((taking as FixedTaking).window === this.window) this.taken = Math.max(this.taken - excess, 0);
  }

  freeAtMs(nowMs: number): number {
    return this.used(nowMs) === 0 ? nowMs : this.roomAtMs(this.limit, nowMs);
  }

  /** The latest end wins, because an answer with an earlier end may have been under way for longer. */
  endsAt(endMs: number, nowMs: number): void {
    this.begin(nowMs);
    this.endMs = this.isEndTold ? Math.max(this.endMs, endMs) : endMs;
    this.isEndTold = true;
  }

  private begin(nowMs: number): void {
    this.end(nowMs);
    if (nowMs >= this.endMs) this.open(nowMs + this.perMs);
  }

  /** Ends the windows that are over; a debt goes from each to the next. */
  private end(nowMs: number): void {
    if (!(nowMs >= this.endMs) || this.taken === 0) return;
    const passed = Math.floor((nowMs - this.endMs) / this.perMs) + 1;
    this.taken = Math.max(this.taken - passed * this.limit, 0);
    this.open(this.endMs + passed * this.perMs);
    // Nothing was taken in it yet: it begins with its first taking.
    if (this.taken === 0) this.endMs = -Infinity;
  }

  private open(endMs: number): void {
    this.window++;
    this.endMs = endMs;
    this.isEndTold = false;
  }
}
