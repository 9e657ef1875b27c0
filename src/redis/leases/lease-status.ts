/** One lease at one instant, for metrics, inspectors and logs, and the events of all leases of a replica. */
import type { LeaseFigures } from '../../base/lease-figures.js';
import type { LinkFigures } from '../store/store-link.js';
import type { StoreProblem } from '../store/store-problem.js';
import type { Grant } from './capacity-lease.js';

export interface LeaseStatus extends LeaseFigures {
  /** The name of this replica. */
  readonly replica: string;
  /** Where the name is from. A restart of one with a `random` name is not known as such. */
  readonly nameOrigin: 'given' | 'found' | 'random';
  readonly unit: 'requests' | 'tokens';
  /** The fair part, by the last answer. */
  readonly target: number;
  /** In flight and waiting, as last told. */
  readonly wants: number;
  /** True while the store learns again who holds what. */
  readonly isLearning: boolean;
  readonly store: LinkFigures;
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
