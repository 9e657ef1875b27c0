/** The clock of a world: manual, with or without turns of an event loop, and in some worlds it runs backwards. */
import { ManualClock } from '../../src/testing/index.js';

export interface ClockHabits {
  /** It tells of turns, which end when the world says so. */
  readonly tellsTurns: boolean;
  /** Somebody sets it back now and then, which no monotonic clock does. */
  readonly runsBackwards: boolean;
}

export class WorldClock extends ManualClock {
  readonly runsBackwards: boolean;
  /** Undefined where no turns are told. */
  readonly nextTurn?: (callback: () => void) => void;
  private ended: (() => void)[] = [];
  /** Timers that were cleared at the end of the turn before theirs. */
  private readonly cleared = new Set<unknown>();
  private setBackMs = 0;

  constructor(nowMs: number, { tellsTurns, runsBackwards }: ClockHabits) {
    super(nowMs);
    this.runsBackwards = runsBackwards;
    if (tellsTurns) this.nextTurn = (callback) => void this.ended.push(callback);
  }

  override now(): number {
    return super.now() - this.setBackMs;
  }

  /** Time that passes, and each timer, is a turn of its own. */
  override advance(ms: number): void {
    this.endTurn();
    super.advance(ms);
  }

  override setTimeout(callback: () => void, delayMs: number): unknown {
    const timer = super.setTimeout(() => {
      this.endTurn();
      // The end of the turn before may have cleared it, as a timer that falls due may clear the next.
      if (!this.cleared.delete(timer)) callback();
    }, delayMs);
    return timer;
  }

  override clearTimeout(timer: unknown): void {
    const { pendingTimers } = this;
    super.clearTimeout(timer);
    if (this.pendingTimers === pendingTimers) this.cleared.add(timer);
  }

  setBack(ms: number): void {
    if (this.runsBackwards) this.setBackMs += ms;
  }

  /** Ends a turn; false when nobody waited for it. */
  endTurn(): boolean {
    const callbacks = this.ended.splice(0);
    for (const callback of callbacks) callback();
    return callbacks.length > 0;
  }
}
