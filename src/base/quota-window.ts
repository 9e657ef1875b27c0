/**
 * The arithmetic of quotas: how much of a limit is used, and when there is room again. Pure, without a clock.
 *
 *     room at? ──► take (the estimate) ──► settle (what it really was)
 *
 * Invariant: whoever asks takes nothing before `roomAtMs`. Who does not may put the window in debt, which comes first.
 */

/** How the limit is counted. */
export type WindowKind = 'gcra' | 'fixed' | 'sliding';

/** One thing taken from a window. `amount` is what it counts for now. */
export interface Taking {
  amount: number;
}

export interface QuotaWindow {
  readonly kind: WindowKind;
  /** The amount that may be taken in `perMs`. */
  limit: number;
  /** The amount that may be taken at once. A request that is larger runs when all of it is there. */
  burst: number;
  perMs: number;
  /** The amount that is taken and not free again; beyond `burst` while in debt. */
  used(nowMs: number): number;
  /** From `nowMs` on the first instant at which `amount` fits; Infinity: never. `returning` may come back before. */
  roomAtMs(amount: number, nowMs: number, returning?: number): number;
  /** Takes at once, whether there is room or not. */
  take(amount: number, nowMs: number): Taking;
  /** Makes `taking` count for `amount`: what is too much is given back, and what is missing is taken now. */
  settle(taking: Taking, amount: number, nowMs: number): void;
  /** When all is free again, if nothing more is taken. */
  freeAtMs(nowMs: number): number;
  /** True while its end is a guess. Only a `fixed` window has one. */
  readonly isGuessing?: boolean;
  /** The provider says that the window ends at that instant. Only a `fixed` window has an end. */
  endsAt?(endMs: number, nowMs: number): void;
  /** True if others take from it, and give back unseen: `roomAtMs` is a guess. Only these have what follows. */
  readonly isShared?: boolean;
  /** A request of that amount found no room: it waits until some has been fetched. */
  wants?(amount: number, nowMs: number): void;
  /** The provider, which counts for all, says that no more than `amount` of the limit is left. */
  leaves?(amount: number, nowMs: number): void;
  /** Nothing is taken any more; what was taken may still be settled. */
  retire?(): void;
}

/** A quota, as a source gets it. */
export interface QuotaTerms {
  /** The same for the same quota in every process; different for different quotas of one process. */
  readonly key: string;
  /** Units in `perMs`. */
  readonly limit: number;
  readonly perMs: number;
  /** The amount that may be taken at once. */
  readonly burst: number;
  /** Calls when there may be room where there was none. */
  readonly onRoom: () => void;
}

/** Keeps the quotas of a detector that other processes share. */
export interface QuotaSource {
  /** A window to take from. Called once for each quota; it is retired when the quota is forgotten. Must not throw. */
  window(terms: QuotaTerms): QuotaWindow;
}

/** Share of a limit by which a balance may miss an amount: less than what rounding can make of a refill. */
export const rounding = 1e-9;

/** A window whose whole limit may be taken at once. */
export abstract class WholeWindow {
  limit: number;
  perMs: number;

  constructor(limit: number, perMs: number) {
    this.limit = limit;
    this.perMs = perMs;
  }

  get burst(): number {
    return this.limit;
  }

  set burst(limit: number) {
    this.limit = limit;
  }
}
