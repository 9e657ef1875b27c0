/**
 * The arithmetic of quotas: what of a limit is used, and when there is room again. Pure: it knows instants, and no clock.
 *
 *     room at? ──► take (the estimate) ──► settle (what it really was)
 *
 * Invariant: nothing is taken before `roomAtMs` says that there is room, except by whoever takes without asking; then a window is in debt,
 * and lends nothing more until the debt is paid.
 */

/** How the limit is counted. */
export type WindowKind = 'gcra' | 'fixed' | 'sliding';

/** One thing taken from a window. `amount` is what it counts for now. */
export interface Taking {
  amount: number;
}

export interface QuotaWindow {
  readonly kind: WindowKind;
  /** What may be taken in `perMs`. */
  limit: number;
  /** What may be taken at once. A request that is larger runs when all of it is there. */
  burst: number;
  perMs: number;
  /** What is taken and not free again; beyond `burst` while in debt. */
  used(nowMs: number): number;
  /**
   * The earliest instant from `nowMs` on at which `amount` fits, if nothing else is taken; Infinity when never. `returning` may come back
   * before: it counts as free.
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
}

/** Share of a limit by which a balance may miss an amount: less than what rounding can make of a refill. */
export const rounding = 1e-9;
