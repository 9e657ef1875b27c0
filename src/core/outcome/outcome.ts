/** How a request can end at the gate: one closed union, in the mission's names. */
import type { Explanation, LimitHit } from './explanation.js';
// biome-ignore lint/suspicious/noImportCycles: an outcome hands out a lease, and a lease that is put back has an outcome.
import type { Lease } from './lease.js';

/** Rejected = never queued; evicted = was queued. Also the label values of metrics. */
export type DropType =
  | 'RejectedCapacity'
  | 'RejectedNoEndpoints'
  | 'RejectedOther'
  | 'EvictedTTL'
  | 'EvictedNoEndpoints'
  | 'EvictedContextCancelled'
  | 'EvictedOther';

/** `Dispatched` and the drops. */
export type OutcomeType = 'Dispatched' | DropType;

/**
 * Why a request was dropped.
 * - `global-max-requests` … `flow-max-bytes`: that capacity limit; `limit` has the figures.
 * - `refused`, `overloaded`: an admission policy did not let it in; `policy` and `detail` say more. Overloaded: every
 *   worker is busy.
 * - `displaced`: the queue was full, and a request of higher priority took its place; with a `limit`, one of a flow
 *   with less waiting.
 * - `evicted`: it was evicted while it ran, and could not be put back.
 * - `infeasible`: its turn came when it could not have met its deadline any more (`edf({ dropInfeasible: true })`).
 * - `over-quota`: a quota has no room for it before its time to live is over; `detail` says which, `retryAfterMs` when
 *   there will be room.
 * - `over-budget`: no budget is left for it; `retryAfterMs`, when there will be some again.
 * - `revoked`: it became void while it waited: the host's `onDispatch` gave a reason, and `detail` says why.
 * - `max-bands`: its priority has no band, and no further band may be made.
 * - `ttl-expired`: it waited its time to live while the pool had endpoints.
 * - `no-endpoints`: it waited `noEndpointRequestTtl` while the pool had none.
 * - `cancelled`: its signal aborted.
 * - `shutting-down`: the controller is closed or closing.
 */
export type DropReason =
  | `${LimitHit['scope']}-max-${LimitHit['resource']}`
  | 'refused'
  | 'overloaded'
  | 'displaced'
  | 'evicted'
  | 'infeasible'
  | 'over-quota'
  | 'over-budget'
  | 'revoked'
  | 'max-bands'
  | 'ttl-expired'
  | 'no-endpoints'
  | 'cancelled'
  | 'shutting-down';

/** The request may run: `lease` must be released when it ends. */
export interface Dispatched {
  readonly type: 'Dispatched';
  readonly lease: Lease;
  /** Time from `enqueue` to dispatch, ms. */
  readonly queuedMs: number;
}

/** The request may not run. */
export interface Drop {
  readonly type: DropType;
  readonly reason: DropReason;
  readonly fairnessId: string;
  readonly priority: number;
  /** Time from `enqueue` to the drop, ms; 0 for rejections. */
  readonly queuedMs: number;
  /** The limit that was reached and its use, if the reason names a limit. */
  readonly limit?: LimitHit | undefined;
  /** The admission policy that rejected it, and its text. */
  readonly policy?: string | undefined;
  readonly detail?: string | undefined;
  /** The time until the requests ahead should be gone, at the band's recent rate; absent when nothing was measured. */
  readonly retryAfterMs?: number | undefined;
  /** The decision, in a sentence and as data, of every drop. It is computed when read, and not copied along. */
  readonly explanation?: Explanation | undefined;
}

export type Outcome = Dispatched | Drop;
