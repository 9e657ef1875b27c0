/**
 * What the operations of one turn of the event loop share: how many waiting requests may be dispatched before timers and sockets have
 * their turn, and readings of the clock.
 *
 * Where the clock tells of turns, the budget is one for all walks of a turn, so that a chain of releases is bounded as well; elsewhere
 * it is one for each walk, and whoever uses it renews it.
 */
import type { Clock } from '../../base/clock.js';

/** Operations on one reading, at most: what the host does between them is not seen by the clock. */
const sharedBy = 16;
/** Operations that follow one another as closely as this, ms, belong to a rush. */
const rushMs = 0.02;

export class Turn {
  /** True until the next turn: what waits goes on waiting. */
  isSpent = false;
  private dispatched = 0;
  /** True while the end of the turn is awaited: `onTurn` will be called. */
  isMarked = false;
  /** Never undefined once made: see `arrivedAtMs` of QueueItem. */
  private nowMs: number | undefined = undefined;
  /** Operations that the last reading is still good for. */
  private readingLeft = 0;
  private readonly clock: Clock;
  private readonly onTurn: (wasSpent: boolean) => void;

  /** `onTurn` is called after a turn with dispatches of what waited, or with a rush; the budget is new then. */
  constructor(clock: Clock, onTurn: (wasSpent: boolean) => void) {
    this.clock = clock;
    this.onTurn = onTurn;
    this.nowMs = clock.now();
  }

  /** False when the user has to call `renew` in the next turn. */
  get renewsItself(): boolean {
    return this.clock.nextTurn !== undefined;
  }

  /** The last reading. */
  get instant(): number {
    return this.nowMs as number;
  }

  /** The instant. */
  read(): number {
    const nowMs = this.clock.now();
    this.nowMs = nowMs;
    return nowMs;
  }

  /**
   * The instant for one of many operations: in a rush sixteen share a reading, which never outlasts the turn. Two readings are a tenth of
   * a request (bench: steady).
   */
  readShared(): number {
    const before = this.instant;
    if (this.readingLeft > 0) {
      this.readingLeft--;
      return before;
    }
    const nowMs = this.read();
    if (this.isMarked) this.readingLeft = sharedBy - 1;
    else if (nowMs - before < rushMs) this.mark();
    return nowMs;
  }

  walkBegins(): void {
    if (!this.renewsItself && !this.isSpent) this.dispatched = 0;
  }

  spend(budget: number): void {
    this.dispatched++;
    if (this.dispatched >= budget) this.isSpent = true;
    if (!this.isMarked) this.mark();
  }

  renew(): void {
    this.dispatched = 0;
    this.isSpent = false;
  }

  private mark(): void {
    if (this.clock.nextTurn === undefined) return;
    this.isMarked = true;
    this.clock.nextTurn(() => {
      this.isMarked = false;
      this.readingLeft = 0;
      const wasSpent = this.isSpent;
      this.renew();
      this.onTurn(wasSpent);
    });
  }
}
