/** Simulated time: a heap of events by time, then order of making. Invariant: it moves only to the next event. */
import TinyQueue from 'tinyqueue';
import type { Clock } from '../../index.js';

/** Something that happens at an instant. The clock owns it. */
export class SimEvent {
  action: (() => void) | undefined;
  readonly atMs: number;
  readonly order: number;

  constructor(atMs: number, order: number, action: () => void) {
    this.action = action;
    this.atMs = atMs;
    this.order = order;
  }
}

const byTime = (a: SimEvent, b: SimEvent): number => a.atMs - b.atMs || a.order - b.order;

/** Cancelled events are removed together when they are more than the others. */
const fewestToSweep = 1024;

export class VirtualClock implements Clock {
  /** Events that were run. */
  events = 0;
  private heap = new TinyQueue<SimEvent>([], byTime);
  private nowMs = 0;
  private made = 0;
  private cancelled = 0;

  now(): number {
    return this.nowMs;
  }

  /** Runs `action` at that instant, or now when it has passed. */
  at(atMs: number, action: () => void): SimEvent {
    const event = new SimEvent(Math.max(atMs, this.nowMs), this.made++, action);
    // An event that never comes need not be kept.
    if (atMs < Infinity) this.heap.push(event);
    return event;
  }

  after(delayMs: number, action: () => void): SimEvent {
    return this.at(this.nowMs + delayMs, action);
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    return this.at(this.nowMs + delayMs, callback);
  }

  clearTimeout(timer: unknown): void {
    if (timer instanceof SimEvent) this.cancel(timer);
  }

  cancel(event: SimEvent): void {
    if (event.action === undefined) return;
    event.action = undefined;
    if (event.atMs === Infinity) return;
    this.cancelled++;
    if (this.cancelled > fewestToSweep && this.cancelled * 2 > this.heap.length) this.sweep();
  }

  /** Runs the next event if it is due by `untilMs`; otherwise false, and time moves to `untilMs` if that is finite. */
  step(untilMs: number): boolean {
    for (let event = this.heap.peek(); event !== undefined && event.atMs <= untilMs; event = this.heap.peek()) {
      this.heap.pop();
      const { action } = event;
      if (action === undefined) {
        this.cancelled--;
        continue;
      }
      event.action = undefined;
      this.nowMs = event.atMs;
      this.events++;
      action();
      return true;
    }
    if (untilMs < Infinity && untilMs > this.nowMs) this.nowMs = untilMs;
    return false;
  }

  private sweep(): void {
    this.heap = new TinyQueue(
      this.heap.data.filter((event) => event.action !== undefined),
      byTime,
    );
    this.cancelled = 0;
  }
}
