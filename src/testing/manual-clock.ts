/** Time that moves only when told to: a heap of timers by their instants, then by the order of their making. */
import { HeapQueue } from '../base/queues/heap-queue.js';
import type { Clock } from '../index.js';

/** Something that happens at an instant. Its clock owns it. */
export class Timer {
  /** Undefined once it ran, or was cleared. */
  action: (() => void) | undefined;
  readonly atMs: number;
  readonly sequence: number;

  constructor(atMs: number, sequence: number, action: (() => void) | undefined) {
    this.action = action;
    this.atMs = atMs;
    this.sequence = sequence;
  }

  get isWaiting(): boolean {
    return this.action !== undefined;
  }
}

/** What the clocks of tests and of simulations have in common. */
export class TimedClock implements Clock {
  private readonly timers = new HeapQueue<Timer>((a, b) => a.atMs - b.atMs || a.sequence - b.sequence);
  protected nowMs: number;
  private made = 0;

  constructor(nowMs = 0) {
    this.nowMs = nowMs;
  }

  /** Timers not yet run or cleared. */
  get pendingTimers(): number {
    return this.timers.length - this.timers.tombstones;
  }

  now(): number {
    return this.nowMs;
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    return this.add(this.nowMs + delayMs, callback);
  }

  clearTimeout(timer: unknown): void {
    if (!(timer instanceof Timer) || !timer.isWaiting) return;
    timer.action = undefined;
    this.timers.discard();
  }

  /** Runs `action` at that instant, or now when it has passed. */
  protected add(atMs: number, action: () => void): Timer {
    const timer = new Timer(Math.max(atMs, this.nowMs), this.made++, action);
    this.timers.push(timer);
    return timer;
  }

  /** Runs the next timer if it is due by `untilMs`; otherwise false. */
  protected step(untilMs: number): boolean {
    const timer = this.timers.peek();
    if (timer === undefined || timer.atMs > untilMs) return false;
    this.timers.shift();
    const { action } = timer;
    timer.action = undefined;
    this.nowMs = timer.atMs;
    action?.();
    return true;
  }
}

/** A clock for tests: `advance` runs the timers that fall due, in order, each at its own instant. */
export class ManualClock extends TimedClock {
  /** Moves time forward by `ms`, running what falls due on the way, timers set by those timers included. */
  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    while (this.step(untilMs));
    this.nowMs = Math.max(this.nowMs, untilMs);
  }
}
