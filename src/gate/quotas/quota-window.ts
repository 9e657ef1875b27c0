/**
 * The arithmetic of quotas: what of a limit is used, and when there is room again. Pure: it knows instants, and no
 * clock.
 *
 *     room at? ──► take (the estimate) ──► settle (what it really was)
 *
 * Invariant: nothing is taken before `roomAtMs` says that there is room, except by whoever takes without asking; then a
 * window is in debt, and lends nothing more until the debt is paid.
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
  /**
   * The earliest instant from `nowMs` on at which `amount` fits, if nothing else is taken; Infinity when never.
   * `returning` may come back before: it counts as free.
   */
  roomAtMs(amount: number, nowMs: number, returning?: number): number;
  /** Takes at once, whether there is room or not. */
  take(amount: number, nowMs: number): Taking;
  /** Makes `taking` count for `amount`: what is too much is given back, and what is missing is taken now. */
  settle(taking: Taking, amount: number, nowMs: number): void;
  /** When all is free again, if nothing more is taken. */
  freeAtMs(nowMs: number): number;
  /** True while its end is a guess. Only a `fixed` window has one. */
  readonly isGuessing?: boolean;
  /** Somebody else knows that the window ends then. Only a `fixed` window has an end. */
  endsAt?(endMs: number, nowMs: number): void;
  /**
   * True where others take from the same limit, and may give back what nobody here knows of: then `roomAtMs` is a
   * guess. What follows is for such windows alone.
   */
  readonly isShared?: boolean;
  /** A request of that amount found no room: it waits until some has been fetched. */
  wants?(amount: number, nowMs: number): void;
  /** Somebody who counts for all knows that no more than `amount` of the limit is left. */
  leaves?(amount: number, nowMs: number): void;
  /** Nobody takes any more; what is taken may still be settled. */
  retire?(): void;
}

/** A quota as a source is told of it. */
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
  /** A window of this process alone, for a part of the limit, 0…1: for the time without the others. */
  local(part: number): QuotaWindow;
}

/** Where the quotas of a detector are kept when they are not this process's own. */
export interface QuotaSource {
  /** A window to take from. Called once for each quota; it is retired when the quota is forgotten. Must not throw. */
  window(terms: QuotaTerms): QuotaWindow;
}

/** Share of a limit by which a balance may miss an amount: less than what rounding can make of a refill. */
export const rounding = 1e-9;
