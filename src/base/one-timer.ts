/** One timer at a time, and the instant that it is set for. */
import type { Clock } from './clock.js';

export class OneTimer {
  isSet = false;
  /** Ms of the clock; Infinity while it is not set. */
  atMs: number = Infinity;
  private timer: unknown = undefined;
  private readonly clock: Clock;
  private readonly onTime: () => void;

  constructor(clock: Clock, onTime: () => void) {
    this.clock = clock;
    this.onTime = onTime;
  }

  /** Sets it for that instant, `delayMs` from now, in place of another. Returns the platform's timer. */
  set(atMs: number, delayMs: number): unknown {
    if (this.isSet) this.stop();
    this.isSet = true;
    this.atMs = atMs;
    const ring = (): void => {
      this.isSet = false;
      this.atMs = Infinity;
      this.onTime();
    };
    this.timer = this.clock.setTimeout(ring, Math.max(delayMs, 0));
    return this.timer;
  }

  /** Sets it for `delayMs` from now at most; Infinity stops it. One for an earlier time stays as it is. */
  in(delayMs: number, nowMs: number): void {
    if (delayMs === Infinity) this.stop();
    else if (nowMs + delayMs < this.atMs) this.set(nowMs + delayMs, delayMs);
  }

  stop(): void {
    if (!this.isSet) return;
    this.clock.clearTimeout(this.timer);
    this.isSet = false;
    this.atMs = Infinity;
  }
}
