/** Time that moves only when told to. */
import type { Clock } from '../index.js';

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock for tests and simulations: `advance` runs the timers that fall due, in order, each at its own instant. */
export class ManualClock implements Clock {
  /** The earliest first; of one instant, in the order in which they were set. */
  private timers: Timer[] = [];
  private nowMs;

  constructor(nowMs = 0) {
    this.nowMs = nowMs;
  }

  /** Timers not yet run or cleared. */
  get pendingTimers(): number {
    return this.timers.length;
  }

  now(): number {
    return this.nowMs;
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    const timer: Timer = { atMs: this.nowMs + Math.max(delayMs, 0), callback };
    const later = this.timers.findIndex(({ atMs }) => atMs > timer.atMs);
    this.timers.splice(later < 0 ? this.timers.length : later, 0, timer);
    return timer;
  }

  clearTimeout(timer: unknown): void {
    this.timers = this.timers.filter((other) => other !== timer);
  }

  /** Moves time forward by `ms`, running what falls due on the way, timers set by those timers included. */
  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    for (let timer = this.timers[0]; timer !== undefined && timer.atMs <= untilMs; timer = this.timers[0]) {
      this.clearTimeout(timer);
      this.nowMs = Math.max(this.nowMs, timer.atMs);
      timer.callback();
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
  }
}
