/** Time as the controller knows it: one monotonic source, so that a test or a simulator can replace it. */

/** A monotonic clock with timers, all in milliseconds. */
export interface Clock {
  now(): number;
  /** Calls back once, after at least `delayMs`; a delay too long for the platform, Infinity included, may end early. */
  setTimeout(callback: () => void, delayMs: number): unknown;
  clearTimeout(timer: unknown): void;
  /**
   * Calls back in the next turn of the event loop, after timers and sockets had theirs. Without it, as in tests and
   * simulations, a timer of 0 ms stands in where a turn has to be awaited, and no operations share a reading of `now`.
   */
  nextTurn?(callback: () => void): void;
}

/** The longest delay that timers of Node and of browsers can hold. */
const longestTimerMs = 2 ** 31 - 1;

const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };

/** `performance.now()` and the platform's timers, which keep a Node process alive. */
export const realClock: Clock = {
  now: () => performance.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, Math.min(delayMs, longestTimerMs)),
  clearTimeout: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout> | undefined),
  ...(setImmediate !== undefined && { nextTurn: (callback: () => void) => void setImmediate(callback) }),
};

/**
 * Node's timers keep the process alive; this one, which it returns, must not. Timers of other platforms and clocks are
 * left as they are.
 */
export function letProcessEnd<T>(timer: T): T {
  const handle = timer as { unref?: unknown } | null | undefined;
  if (typeof handle?.unref === 'function') handle.unref();
  return timer;
}

/**
 * The value of a field before its first instant, so that V8 stores a reference to the number from then on, which all
 * requests of a rush share. A field that only ever held numbers copies them: sixteen bytes for each request (bench:
 * backlog).
 */
export const neverUnboxed: number = undefined as unknown as number;

/** Operations that share one reading, at most: the clock does not see what the host does between them. */
const sharedBy = 16;
/** Operations that follow one another as closely as this, ms, are a rush. */
const rushMs = 0.02;

/** How much older than its operations a reading may be without being noted, ms: timers are no more exact. */
const toleratedMs = 1;
/** Readings that are noted one by one. */
const mostNoted = 256;

/**
 * A clock that is read once for up to sixteen operations of a rush, because two readings are a tenth of a request
 * (bench: steady).
 *
 * Invariant: a shared reading never outlasts its turn of the event loop. Clocks that tell no turns share nothing.
 */
export class CoarseClock {
  /** True while the end of this turn is awaited. */
  isTurnAwaited = false;
  /** True when the clock tells of turns. */
  readonly tellsTurns: boolean;
  /** True when the last answer of `readShared` was an earlier reading. */
  isBehind = false;
  /** True when `forgetReadings` has something to forget. */
  hasNotes = false;
  private lastMs: number = neverUnboxed;
  /** Operations that the last reading still serves. */
  private readingsLeft = 0;
  /** For readings that were shared for long, because the host did something else meanwhile: the next reading. */
  private readonly sharedUntilMs = new Map<number, number>();
  /** The longest that a reading was shared for when there was no room to note it. */
  private longestSharedMs = 0;
  private readonly clock: Clock;
  private readonly onTurn: () => void;
  private readonly turnEnded = (): void => {
    this.read();
    this.isTurnAwaited = false;
    this.readingsLeft = 0;
    this.onTurn();
  };

  /** `onTurn` is called after each turn that `awaitTurn` was called in. */
  constructor(clock: Clock, onTurn: () => void) {
    this.clock = clock;
    this.onTurn = onTurn;
    this.tellsTurns = clock.nextTurn !== undefined;
    this.lastMs = clock.now();
  }

  read(): number {
    const nowMs = this.clock.now();
    if (this.isTurnAwaited && nowMs - this.lastMs > toleratedMs) this.note(this.lastMs, nowMs);
    this.lastMs = nowMs;
    this.isBehind = false;
    return nowMs;
  }

  /** The instant for one of many operations; at most fifteen operations old. */
  readShared(): number {
    const beforeMs = this.lastMs;
    if (this.readingsLeft > 0) {
      this.readingsLeft--;
      this.isBehind = true;
      return beforeMs;
    }
    const nowMs = this.clock.now();
    this.isBehind = false;
    this.lastMs = nowMs;
    if (!this.isTurnAwaited) {
      if (nowMs - beforeMs < rushMs) this.awaitTurn();
      return nowMs;
    }
    if (nowMs - beforeMs > toleratedMs) this.note(beforeMs, nowMs);
    this.readingsLeft = sharedBy - 1;
    return nowMs;
  }

  /** An instant that no operation with this reading came after; so that what is counted from it never ends early. */
  latestOf(readingMs: number): number {
    if (!this.tellsTurns) return readingMs;
    const noted = this.hasNotes ? this.sharedUntilMs.get(readingMs) : undefined;
    return noted ?? readingMs + Math.max(toleratedMs, this.longestSharedMs);
  }

  /** Nobody will ask for a reading of before now. */
  forgetReadings(): void {
    this.hasNotes = false;
    this.sharedUntilMs.clear();
    this.longestSharedMs = 0;
  }

  /** Has `onTurn` called in the next turn, where the clock tells of turns. */
  awaitTurn(): void {
    if (this.isTurnAwaited || this.clock.nextTurn === undefined) return;
    this.isTurnAwaited = true;
    this.clock.nextTurn(this.turnEnded);
  }

  private note(readingMs: number, nextMs: number): void {
    this.hasNotes = true;
    if (this.sharedUntilMs.size < mostNoted) this.sharedUntilMs.set(readingMs, nextMs);
    else this.longestSharedMs = Math.max(this.longestSharedMs, nextMs - readingMs);
  }
}
