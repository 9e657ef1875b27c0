/** Simulated time: a heap of events by time, then order of making. Invariant: it moves only to the next event. */
import { HeapQueue } from '../../base/queues/heap-queue.js';
import type { Clock } from '../../index.js';

/** Something that happens at an instant. The clock owns it. */
export class SimEvent {
  /** Undefined once it ran, or was cancelled. */
  action: (() => void) | undefined;
  readonly atMs: number;
  readonly sequence: number;

  constructor(atMs: number, sequence: number, action: () => void) {
    this.action = action;
    this.atMs = atMs;
    this.sequence = sequence;
  }

  get isWaiting(): boolean {
    return this.action !== undefined;
  }
}

export class VirtualClock implements Clock {
  /** Events that were run. */
  events = 0;
  private readonly queue = new HeapQueue<SimEvent>((a, b) => a.atMs - b.atMs || a.sequence - b.sequence);
  private nowMs = 0;
  private made = 0;

  now(): number {
    return this.nowMs;
  }

  /** Runs `action` at that instant, or now when it has passed. */
  at(atMs: number, action: () => void): SimEvent {
    const event = new SimEvent(Math.max(atMs, this.nowMs), this.made++, action);
    // An event that never comes need not be kept.
    if (atMs < Infinity) this.queue.push(event);
    return event;
  }

  after(delayMs: number, action: () => void): SimEvent {
    return this.at(this.nowMs + delayMs, action);
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    return this.after(delayMs, callback);
  }

  clearTimeout(timer: unknown): void {
    if (timer instanceof SimEvent) this.cancel(timer);
  }

  cancel(event: SimEvent): void {
    if (!event.isWaiting) return;
    event.action = undefined;
    if (event.atMs < Infinity) this.queue.discard();
  }

  /** Runs the next event if it is due by `untilMs`; otherwise false, and time moves to `untilMs` if that is finite. */
  step(untilMs: number): boolean {
    const event = this.queue.peek();
    if (event === undefined || event.atMs > untilMs) {
      if (untilMs < Infinity && untilMs > this.nowMs) this.nowMs = untilMs;
      return false;
    }
    this.queue.shift();
    const { action } = event;
    event.action = undefined;
    this.nowMs = event.atMs;
    this.events++;
    action?.();
    return true;
  }
}
