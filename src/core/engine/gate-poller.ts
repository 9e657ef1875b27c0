/** The one timer that looks at a closed gate again when nothing announces a change. */
import type { Clock } from '../../base/clock.js';

export class GatePoller {
  isSet = false;
  private timer: unknown = undefined;
  private atMs: number = Infinity;
  private readonly clock: Clock;
  private readonly onTime: () => void;

  constructor(clock: Clock, onTime: () => void) {
    this.clock = clock;
    this.onTime = onTime;
  }

  /** Looks again in at most `delayMs`; Infinity for not at all. A timer for an earlier time stays as it is. */
  in(delayMs: number, nowMs: number): void {
    if (delayMs === Infinity) this.stop();
    else if (nowMs + delayMs < this.atMs) this.set(delayMs, nowMs);
  }

  stop(): void {
    if (this.timer === undefined) return;
    this.clock.clearTimeout(this.timer);
    this.timer = undefined;
    this.isSet = false;
    this.atMs = Infinity;
  }

  private set(delayMs: number, nowMs: number): void {
    this.stop();
    this.atMs = nowMs + delayMs;
    this.isSet = true;
    this.timer = this.clock.setTimeout(
      () => {
        this.atMs = Infinity;
        this.timer = undefined;
        this.isSet = false;
        this.onTime();
      },
      Math.max(delayMs, 0),
    );
  }
}
