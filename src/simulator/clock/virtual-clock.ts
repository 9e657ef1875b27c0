/** Simulated time, which moves from one event to the next. */
import { TimedClock, Timer } from '../../testing/manual-clock.js';

/** Something that happens at an instant. The clock owns it. */
export type SimEvent = Timer;

export class VirtualClock extends TimedClock {
  /** Events that were run. */
  events = 0;

  /** Runs `action` at that instant, or now when it has passed. */
  at(atMs: number, action: () => void): SimEvent {
    // An event that never comes need not be kept.
    return atMs < Infinity ? this.add(atMs, action) : new Timer(atMs, 0, undefined);
  }

  after(delayMs: number, action: () => void): SimEvent {
    return this.at(this.nowMs + delayMs, action);
  }

  /** Runs the next event if it is due by `untilMs`; otherwise false, and time moves to `untilMs` if that is finite. */
  override step(untilMs: number): boolean {
    const hasRun = super.step(untilMs);
    if (hasRun) this.events++;
    else if (untilMs < Infinity) this.nowMs = Math.max(this.nowMs, untilMs);
    return hasRun;
  }
}
