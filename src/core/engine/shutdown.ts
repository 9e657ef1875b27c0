/** The end of a controller: open, then draining while what waits may still go, then closed when nothing waits. */
import type { Clock } from '../../base/clock.js';

export class Shutdown {
  state: 'open' | 'draining' | 'closed' = 'open';
  private timer: unknown = undefined;
  private drainsUntilMs = Infinity;
  private readonly waiters: (() => void)[] = [];
  private readonly clock: Clock;
  private readonly onTimeUp: () => void;
  private readonly onClosed: () => void;

  /** `onTimeUp` is called when what still waits has to leave, `onClosed` when nothing waits any more. */
  constructor(clock: Clock, onTimeUp: () => void, onClosed: () => void) {
    this.clock = clock;
    this.onTimeUp = onTimeUp;
    this.onClosed = onClosed;
  }

  closed(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  /** A later call can only shorten the time. */
  drain(drainMs: number, nowMs: number): void {
    this.state = 'draining';
    const untilMs = nowMs + drainMs;
    if (untilMs >= this.drainsUntilMs) return;
    this.drainsUntilMs = untilMs;
    this.clock.clearTimeout(this.timer);
    if (drainMs === 0) this.onTimeUp();
    else this.timer = this.clock.setTimeout(this.onTimeUp, drainMs);
  }

  finish(): void {
    this.onClosed();
    this.state = 'closed';
    this.clock.clearTimeout(this.timer);
    for (const resolve of this.waiters) resolve();
  }
}
