/**
 * Runs one operation at a time, each to its end. A call that comes from inside one (a policy, a listener, an abort)
 * waits until it has ended.
 */
import type { Clock } from '../../base/clock.js';

/** Turns of the loop in one go; a listener that calls back without end continues in a later turn of the event loop. */
const longestRun = 1000;

/** The object whose state the writer protects. */
export interface SerialHost {
  /**
   * True while an operation runs: from `begin` to `rest`. The host alone writes it, because it opens most operations
   * itself; true from the start, so that what is called during construction waits until `leave`.
   */
  readonly isBusy: boolean;
  /** Called before an operation: reads the one instant for all of it. */
  begin(): void;
  /** True when `work` has something to do. */
  readonly isWorkWanted: boolean;
  /** Called after an operation, until nothing is left to do. */
  work(): void;
  /** Last of all. May want work again. */
  end(): void;
  /** The operation is over. */
  rest(): void;
}

export class SingleWriter {
  /** True while operations are put off until the running one ends. */
  hasDeferred = false;
  private deferred: (() => void)[] = [];
  private continuation: unknown = undefined;
  private readonly clock: Clock;
  private readonly host: SerialHost;

  constructor(clock: Clock, host: SerialHost) {
    this.clock = clock;
    this.host = host;
  }

  /** Runs the operation now, or after the one that is running. */
  perform(operation: () => void): void {
    if (this.host.isBusy) {
      this.deferred.push(operation);
      this.hasDeferred = true;
      return;
    }
    this.host.begin();
    try {
      operation();
    } finally {
      this.leave();
    }
  }

  /** Ends the operation that is running, and does everything that it left to do. */
  leave(): void {
    try {
      for (let turns = 0; turns < longestRun; turns++) {
        if (this.hasWork) {
          this.turn();
          continue;
        }
        this.host.end();
        if (this.hasWork) continue;
        if (this.continuation !== undefined) this.stopContinuation();
        return;
      }
      this.host.end();
      this.continueLater();
    } finally {
      this.host.rest();
    }
  }

  private get hasWork(): boolean {
    return this.host.isWorkWanted || this.hasDeferred;
  }

  private turn(): void {
    if (this.host.isWorkWanted) this.host.work();
    if (!this.hasDeferred) return;
    const operations = this.deferred;
    this.deferred = [];
    this.hasDeferred = false;
    this.host.begin();
    for (const operation of operations) operation();
  }

  private continueLater(): void {
    this.continuation ??= this.clock.setTimeout(() => {
      this.continuation = undefined;
      this.perform(() => {});
    }, 0);
  }

  private stopContinuation(): void {
    this.clock.clearTimeout(this.continuation);
    this.continuation = undefined;
  }
}
