/** One call at a time, at the earliest instant asked for. Invariant: none during one; who ends it asks again. */
import { letProcessEnd } from '../../base/clock.js';
import { OneTimer } from '../../base/one-timer.js';
import type { Clock } from '../../index.js';

export class CallSchedule {
  private notBeforeMs: number = -Infinity;
  private isCalling = false;
  private isQueued = false;
  /** Resolves when the last call is over; never rejects. */
  private sending: Promise<void> = Promise.resolve();
  private readonly timer: OneTimer;
  private readonly clock: Clock;
  private readonly send: () => Promise<void> | undefined;

  /** `send` begins a call, or returns undefined when there is nothing to do. It calls `over`, and never rejects. */
  constructor(clock: Clock, send: () => Promise<void> | undefined) {
    this.clock = clock;
    this.send = send;
    this.timer = new OneTimer(clock, () => void this.call());
  }

  /** 0: in a microtask. */
  callIn(delayMs: number): void {
    if (this.isCalling || this.isQueued) return;
    const nowMs = this.clock.now();
    const atMs = Math.max(nowMs + delayMs, this.notBeforeMs);
    if (atMs <= nowMs) {
      this.isQueued = true;
      queueMicrotask(() => void this.call());
    } else if (atMs < this.timer.atMs) {
      letProcessEnd(this.timer.set(atMs, Math.min(atMs - nowMs, 2 ** 31 - 1)));
    }
  }

  /** At once, unless a call is under way. Resolves when it is over. */
  call(): Promise<void> {
    this.isQueued = false;
    if (this.isCalling) return this.sending;
    this.isCalling = true;
    const sending = this.send();
    if (sending === undefined) this.isCalling = false;
    else {
      this.stop();
      this.sending = sending;
    }
    return this.sending;
  }

  /** The call is over; the next is made no sooner than in `pauseMs`. */
  over(pauseMs: number): void {
    this.isCalling = false;
    this.notBeforeMs = this.clock.now() + pauseMs;
  }

  stop(): void {
    this.timer.stop();
  }
}
