/** One lease at one instant, for metrics, inspectors and logs, and the events of all leases of a replica. */

import type { LinkFigures } from '../store/store-link.js';
import type { StoreProblem } from '../store/store-problem.js';
import type { CapacityLease, Grant } from './capacity-lease.js';

export interface LeaseStatus {
  readonly pool: string;
  /** The endpoint, if each endpoint has a limit of its own; otherwise undefined. */
  readonly endpoint: string | undefined;
  readonly replica: string;
  readonly unit: 'requests' | 'tokens';
  /** The limit of all replicas together, as this replica was told. */
  readonly limit: number;
  /** The limit on what this replica has in flight now. */
  readonly cap: number;
  /**
   * Figures of the last answer: the grant, the fair part, the safe share, the number of replicas, and what all replicas
   * hold.
   */
  readonly granted: number;
  readonly target: number;
  readonly safeShare: number;
  readonly replicas: number;
  readonly held: number;
  readonly inFlight: number;
  /** In flight and waiting, as last told. */
  readonly wants: number;
  /** The time since the call whose answer is in force; Infinity before the first. */
  readonly leaseAgeMs: number;
  /** True while the fallback is in force. */
  readonly isExpired: boolean;
  /** True while the store learns again who holds what. */
  readonly isLearning: boolean;
  /** Seats in flight above the safe share while the lease is over: others may have been given these. */
  readonly overAdmission: number;
  readonly epochChanges: number;
  readonly store: LinkFigures;
}

export function leaseStatus(
  lease: CapacityLease,
  inFlight: number,
  nowMs: number,
  source: Pick<LeaseStatus, 'pool' | 'endpoint' | 'replica' | 'unit' | 'epochChanges' | 'store'>,
): LeaseStatus {
  const { last, limit, toldWants, safeShare } = lease;
  const isExpired = nowMs >= lease.expiresAtMs;
  return {
    ...source,
    limit,
    cap: lease.cap(nowMs),
    granted: last?.grant ?? 0,
    target: last?.target ?? 0,
    safeShare,
    replicas: last?.replicas ?? 0,
    held: last?.held ?? 0,
    inFlight,
    wants: toldWants,
    leaseAgeMs: nowMs - lease.answeredSentAtMs,
    isExpired,
    isLearning: last?.isLearning === true,
    overAdmission: isExpired ? Math.max(0, inFlight - safeShare) : 0,
  };
}

export interface LeaseEvents {
  /** The share of this replica changed. `key` names the lease. */
  granted: { readonly key: string; readonly grant: number; readonly before: number; readonly answer: Grant };
  /** No answer for a whole lease: the fallback is in force, with this limit. */
  expired: { readonly key: string; readonly limit: number };
  /** Answers come again. */
  recovered: { readonly key: string; readonly grant: number; readonly expiredForMs: number };
  /** The store began anew, or lost writes: no share grows during one lease. */
  epoch: { readonly key: string; readonly epoch: number; readonly before: number };
  /** A call failed; the same problem is reported again after a minute. */
  problem: StoreProblem;
  breaker: { readonly isOpen: boolean };
  /** A listener threw, or its promise was rejected. */
  listenerError: { readonly event: string; readonly error: unknown };
}
