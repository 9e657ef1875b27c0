/** Mode `shadow` in figures. */
import type { DropReason, DropType } from './outcome.js';

/** Requests that would have ended with this outcome and reason. */
export interface ShadowDrops {
  readonly outcome: DropType;
  readonly reason: DropReason;
  readonly requests: number;
}

/** What shadow mode would have done since it is on; every other figure of the controller tells the same meanwhile. */
export interface ShadowFigures {
  /** Requests that were let through. */
  readonly passed: number;
  /** Requests that were rejected in earnest, because the pool has no endpoint that serves them. */
  readonly refused: number;
  /** Leases that callers hold now. */
  readonly running: number;
  /** Requests that would have waited, however their wait would have ended. */
  readonly wouldHaveWaited: number;
  /** Requests that would have been evicted while they ran. */
  readonly wouldHaveBeenEvicted: number;
  /** Requests that would have been rejected, or evicted while they waited; by outcome and reason. */
  readonly wouldHaveBeenDropped: readonly ShadowDrops[];
}
