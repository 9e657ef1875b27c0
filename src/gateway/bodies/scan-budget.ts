/**
 * Bounds what is looked at in one turn of the event loop: a poll may bring pieces of thousands of connections.
 * Invariant: `bytesPerTurn` and one piece more at most; pieces that wait keep their order.
 */

/** Some milliseconds of work for `JsonScanner`. A socket is read in pieces of half of it. */
const bytesPerTurn = 131_072;

/** A body that waits until it may be looked at. */
export interface Waiting {
  /** What there is to look at by now. */
  readonly bytes: number;
  /** Does not throw. */
  go(): void;
}

export class ScanBudget {
  /** Since a turn was last known to be new. To tell apart turns in which little comes would cost each a callback. */
  private bytes = 0;
  private isSpent = false;
  private waiting: Waiting[] = [];

  /** True when this many bytes may be looked at now; if not, call `wait`. */
  spend(bytes: number): boolean {
    if (this.isSpent) return false;
    this.bytes += bytes;
    if (this.bytes >= bytesPerTurn) {
      this.isSpent = true;
      setImmediate(() => this.begin());
    }
    return true;
  }

  /** Calls `go` in a later turn, when its bytes may be looked at. */
  wait(body: Waiting): void {
    this.waiting.push(body);
  }

  private begin(): void {
    this.bytes = 0;
    this.isSpent = false;
    let gone = 0;
    for (; gone < this.waiting.length && this.spend(this.waiting[gone]!.bytes); gone++) this.waiting[gone]!.go();
    this.waiting.splice(0, gone);
  }
}
