/** The end of a controller: open, then draining while what waits may still go, then closed when nothing waits. */
import type { Clock } from '../../base/clock.js';
import { OneTimer } from '../../base/one-timer.js';

export class Shutdown {
  state: 'open' | 'draining' | 'closed' = 'open';
  private readonly waiters: (() => void)[] = [];
  private readonly timer: OneTimer;
  private readonly onTimeUp: () => void;
  private readonly onClosed: () => void;

  /** `onTimeUp` is called when what still waits has to leave, `onClosed` when nothing waits any more. */
  constructor(clock: Clock, onTimeUp: () => void, onClosed: () => void) {
    this.timer = new OneTimer(clock, onTimeUp);
    this.onTimeUp = onTimeUp;
    this.onClosed = onClosed;
  }

  closed(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  /** A later call can only shorten the time. */
  drain(drainMs: number, nowMs: number): void {
    this.state = 'draining';
    if (drainMs === 0) this.onTimeUp();
    else if (drainMs < Infinity) this.timer.in(drainMs, nowMs);
  }

  finish(): void {
    this.onClosed();
    this.state = 'closed';
    this.timer.stop();
    for (const resolve of this.waiters) resolve();
  }
}
