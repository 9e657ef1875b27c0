/**
 * One operation runs at a time, each to its end and at one instant. A call from inside one (a policy, a listener, an
 * abort) waits for its end. Who wants the walk says so; it runs before the operation ends.
 *
 *     begin ── instant ── … ── leave ── the walk, while it is wanted ── what was put off ── end
 *
 * In a rush up to sixteen operations share a reading of the clock, because a reading is a fifth of a request (bench:
 * steady). Invariant: a reading is not shared beyond its turn of the event loop; clocks that tell no turns share none.
 */
import { type Clock, neverUnboxed } from '../../base/clock.js';

/** Runs of the walk in one go; a listener that calls back without end continues in a later turn of the event loop. */
const longestRun = 1000;
/** Operations that share one reading, at most: the clock does not see what the host does between them. */
const sharedBy = 16;
/** Operations that follow one another as closely as this, ms, are a rush. */
const rushMs = 0.02;
/** How much older than its operations a shared reading may be without being put right, ms: timers are no more exact. */
export const toleratedMs = 1;

/** A request that waits from an instant that others share. */
export interface Dated {
  /** It came later than its instant, by at most so long. */
  noteHeldUp(forMs: number): void;
}

/** The walk. */
export interface Worker {
  work(): void;
}

/** Looks after timers. */
export interface Keeper {
  /** True when `end` has something to do. */
  readonly isOn: boolean;
  /** Last of all in an operation. May want work again. */
  end(): void;
  /** The turn of the event loop that was awaited is over. */
  turnBegins(): void;
}

export class Operation {
  /** True in the middle of an operation, and from construction until `start`. */
  isBusy = true;
  /** True when the walk has to run: something may go now. */
  isWorkWanted = false;
  /** The instant of the operation that is running. */
  nowMs: number = neverUnboxed;
  /** True when an earlier reading serves the operation that is running. */
  isBehind = false;
  /** True while the end of this turn of the event loop is awaited. */
  isTurnAwaited = false;
  readonly tellsTurns: boolean;
  private readingsLeft = 0;
  /** What waits from the last reading: that was shared for long if the host did something else until the next. */
  private readonly undated: Dated[] = [];
  private deferred: (() => void)[] = [];
  private continuation: unknown = undefined;
  private worker: Worker | undefined = undefined;
  private keeper: Keeper | undefined = undefined;
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
    this.tellsTurns = clock.nextTurn !== undefined;
    this.nowMs = clock.now();
  }

  /** Ends the construction: from here on operations run. */
  start(worker: Worker, keeper: Keeper): void {
    this.worker = worker;
    this.keeper = keeper;
    this.leave();
  }

  /** Begins an operation while none runs; `leave` it in a `finally`. `isTimed`: false if only the walk needs a time. */
  begin(isTimed = true): void {
    this.isBusy = true;
    this.isBehind = true;
    if (!isTimed) return;
    if (this.readingsLeft === 0) this.read();
    else this.readingsLeft--;
  }

  /** Runs the operation now, or after the one that is running. */
  perform(operation: () => void): void {
    if (this.isBusy) return void this.deferred.push(operation);
    this.isBusy = true;
    this.read();
    try {
      operation();
    } finally {
      this.leave();
    }
  }

  /** Has the walk run before the operation ends, or now. */
  wake(): void {
    this.isWorkWanted = true;
    if (!this.isBusy) this.perform(() => {});
  }

  /** Has the walk run before the operation ends. */
  want(): void {
    this.isWorkWanted = true;
  }

  /** What the clock shows, for what is measured in an operation. */
  now(): number {
    return this.clock.now();
  }

  /** Reads the clock for the operation that is running. */
  read(): void {
    const nowMs = this.clock.now();
    const apartMs = nowMs - this.nowMs;
    if (this.isTurnAwaited) {
      if (this.undated.length > 0) this.date(apartMs);
      this.readingsLeft = sharedBy - 1;
    } else if (apartMs < rushMs) this.awaitTurn();
    this.nowMs = nowMs;
    this.isBehind = false;
  }

  /** It waits from this instant, while a turn is awaited: the next reading says whether that is exact. */
  waitsFromNow(item: Dated): void {
    this.undated.push(item);
  }

  /** Has `turnBegins` called in the next turn, where the clock tells of turns. */
  awaitTurn(): void {
    if (this.isTurnAwaited || this.clock.nextTurn === undefined) return;
    this.isTurnAwaited = true;
    this.clock.nextTurn(this.turnEnded);
  }

  /** Ends the operation that is running, and does everything that it left to do. */
  leave(): void {
    try {
      for (let runs = 0; runs < longestRun; runs++) {
        if (this.isWorkWanted) {
          this.isWorkWanted = false;
          this.worker?.work();
        }
        if (this.deferred.length > 0) this.runDeferred();
        else if (!this.isWorkWanted) {
          if (this.keeper?.isOn === true) this.keeper.end();
          if (this.isWorkWanted || this.deferred.length > 0) continue;
          if (this.continuation !== undefined) this.stopContinuation();
          return;
        }
      }
      if (this.keeper?.isOn === true) this.keeper.end();
      this.continuation ??= this.clock.setTimeout(() => {
        this.continuation = undefined;
        this.perform(() => {});
      }, 0);
    } finally {
      this.isBusy = false;
    }
  }

  private stopContinuation(): void {
    this.clock.clearTimeout(this.continuation);
    this.continuation = undefined;
  }

  private runDeferred(): void {
    const operations = this.deferred;
    this.deferred = [];
    this.read();
    for (const operation of operations) operation();
  }

  private readonly turnEnded = (): void => {
    this.read();
    this.isTurnAwaited = false;
    this.readingsLeft = 0;
    this.keeper?.turnBegins();
  };

  private date(apartMs: number): void {
    if (apartMs > toleratedMs) for (const item of this.undated) item.noteHeldUp(apartMs);
    this.undated.length = 0;
  }
}
