/** Time that moves only when told to. */
import type { Clock } from '../index.js';

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock for tests and simulations: `advance` runs the timers that fall due, in order, each at its own instant. */
export class ManualClock implements Clock {
  private timers: Timer[] = [];
  private made = 0;
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
    const timer = { atMs: this.nowMs + Math.max(delayMs, 0), order: this.made++, callback };
    this.timers.push(timer);
    return timer;
  }

  clearTimeout(timer: unknown): void {
    this.timers = this.timers.filter((other) => other !== timer);
  }

  /** Moves time forward by `ms`, running what falls due on the way, timers set by those timers included. */
  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    for (let timer = this.earliest(); timer !== undefined && timer.atMs <= untilMs; timer = this.earliest()) {
      this.clearTimeout(timer);
      this.nowMs = Math.max(this.nowMs, timer.atMs);
      timer.callback();
    }
    this.nowMs = Math.max(this.nowMs, untilMs);
  }

  private earliest(): Timer | undefined {
    return this.timers.reduce<Timer | undefined>(
      (first, timer) =>
        first === undefined || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order)
          ? timer
          : first,
      undefined,
    );
  }
}
