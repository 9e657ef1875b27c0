/**
 * How many waiting requests may be dispatched before timers and sockets have their turn.
 *
 * Where the clock tells of turns, the budget is one for all walks of a turn, so that a chain of releases is bounded as well; elsewhere
 * it is one for each walk, and whoever uses it renews it.
 */
import type { Clock } from './clock.js';

export class TurnBudget {
  /** True until the next turn: what waits goes on waiting. */
  isSpent = false;
  private dispatched = 0;
  /** True while the end of the turn is awaited. */
  private isMarked = false;
  private readonly clock: Clock;
  private readonly onTurn: () => void;

  /** `onTurn` is called when a spent budget is new again. */
  constructor(clock: Clock, onTurn: () => void) {
    this.clock = clock;
    this.onTurn = onTurn;
  }

  /** False when the user has to call `renew` in the next turn. */
  get renewsItself(): boolean {
    return this.clock.nextTurn !== undefined;
  }

  walkBegins(): void {
    if (!this.renewsItself && !this.isSpent) this.dispatched = 0;
  }

  spend(budget: number): void {
    this.dispatched++;
    if (this.dispatched >= budget) this.isSpent = true;
    if (this.isMarked || this.clock.nextTurn === undefined) return;
    this.isMarked = true;
    this.clock.nextTurn(() => {
      this.isMarked = false;
      const wasSpent = this.isSpent;
      this.renew();
      if (wasSpent) this.onTurn();
    });
  }

  renew(): void {
    this.dispatched = 0;
    this.isSpent = false;
  }
}
