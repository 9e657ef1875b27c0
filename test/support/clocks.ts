/** Clocks that misbehave as real ones do. */
import { ManualClock } from '../../src/testing/index.js';

/** Its timers end after 60 % of their delay, as a timer may when the platform rounds. */
export class EarlyClock extends ManualClock {
  override setTimeout(callback: () => void, delayMs: number): unknown {
    return super.setTimeout(callback, delayMs * 0.6);
  }
}

/** Time passes, timers are late: an event loop that is blocked. `unblock` lets them run. */
export class BlockedClock extends ManualClock {
  private blockedMs = 0;

  override now(): number {
    return super.now() + this.blockedMs;
  }

  block(ms: number): void {
    this.blockedMs += ms;
  }

  unblock(): void {
    const ms = this.blockedMs;
    this.blockedMs = 0;
    this.advance(ms);
  }
}

/** Counts the timers that were ever set, and tells when one ends. */
export class CountingClock extends ManualClock {
  timersSet = 0;
  onTimer: (() => void) | undefined = undefined;

  override setTimeout(callback: () => void, delayMs: number): unknown {
    this.timersSet++;
    return super.setTimeout(() => {
      this.onTimer?.();
      callback();
    }, delayMs);
  }
}

/** Refuses to be asked for more than `mostTimers` timers: a loop of timers fails instead of hanging. */
export class FiniteClock extends CountingClock {
  private readonly mostTimers: number;

  constructor(mostTimers = 1000) {
    super();
    this.mostTimers = mostTimers;
  }

  override setTimeout(callback: () => void, delayMs: number): unknown {
    if (this.timersSet >= this.mostTimers) throw new Error(`more than ${this.mostTimers} timers`);
    return super.setTimeout(callback, delayMs);
  }
}

/** Tells of turns of the event loop, as real clocks do; `endTurn` ends one, and `block` keeps one busy. */
export class TurnClock extends BlockedClock {
  private readonly awaited: (() => void)[] = [];

  nextTurn(callback: () => void): void {
    this.awaited.push(callback);
  }

  /** How many callbacks it ended the turn with. */
  endTurn(): number {
    const callbacks = this.awaited.splice(0);
    for (const callback of callbacks) callback();
    return callbacks.length;
  }
}
