/** The table of the parts of shared limits that this replica holds, and the state of the store. */
import type { LeaseFigures, StoreFigures } from '../../base/lease-figures.js';
import { mostNeedy, pick, shortenName } from './names.js';

/** One lease, as `status` of the detectors of `headgate/redis` tells it. */
export interface InspectedLease extends LeaseFigures {
  readonly unit: 'requests' | 'tokens';
  readonly isLearning: boolean;
  readonly store: InspectedStore;
}

/** The calls of the store. */
export interface InspectedStore extends Omit<StoreFigures, 'breakerOpenings'> {
  readonly problem?: { readonly message: string } | undefined;
}

/** The state that a replica shares with others. */
export interface InspectedShares {
  readonly leases: readonly InspectedLease[];
  /** The quotas that are bought ahead: `sharedQuotas`. */
  readonly quotas?:
    | { readonly status: readonly { readonly isLocal: boolean }[]; readonly store: InspectedStore }
    | undefined;
}

/** `expired`: no answer for a whole lease, so the fallback. `learning`: the store is empty, and no share grows. */
export type LeaseState = 'held' | 'learning' | 'expired' | 'none yet';

export interface FrameLease
  extends Pick<InspectedLease, 'unit' | 'cap' | 'inFlight' | 'limit' | 'safeShare' | 'overAdmission'> {
  /** The endpoint, or the pool where it has one limit. */
  readonly name: string;
  readonly state: LeaseState;
  /** What other replicas hold. */
  readonly others: number;
  /** Null before the first answer. */
  readonly ageMs: number | null;
}

export interface FrameShared {
  readonly rows: readonly FrameLease[];
  readonly otherRows: number;
  /** Replicas that the store knows; null where only quotas are shared. */
  readonly replicas: number | null;
  readonly overAdmission: number;
  readonly epochChanges: number;
  /** Quotas that are drawn from the store, and those of them that go by this replica's fallback share. */
  readonly quotas: { readonly drawn: number; readonly local: number } | null;
  readonly store: Pick<InspectedStore, 'calls' | 'misses' | 'isBreakerOpen'> & {
    readonly latencyMs: number | null;
    /** Null while it answers. */
    readonly problem: string | null;
  };
}

const mostText = 300;

/** Null where nothing is shared, or where that cannot be told. */
export function sharedTable(shares: (() => InspectedShares) | undefined): FrameShared | null {
  if (shares === undefined) return null;
  try {
    return tableOf(shares());
  } catch {
    // If the host's function fails, the page still works.
    return null;
  }
}

function tableOf({ leases, quotas }: InspectedShares): FrameShared | null {
  const [first] = leases;
  const store = first?.store ?? quotas?.store;
  if (store === undefined) return null;
  const shareOf = ({ inFlight, limit }: InspectedLease): number => inFlight / limit;
  const rows = mostNeedy(leases, (a, b) => b.overAdmission - a.overAdmission || shareOf(b) - shareOf(a)).map(toRow);
  const stores = [first?.store, quotas?.store].filter((each) => each !== undefined);
  const sum = (figure: 'calls' | 'misses'): number => stores.reduce((total, each) => total + each[figure], 0);
  const message = stores.find(({ problem }) => problem !== undefined)?.problem?.message;
  return {
    rows,
    otherRows: leases.length - rows.length,
    replicas: first?.replicas ?? null,
    overAdmission: leases.reduce((total, { overAdmission }) => total + overAdmission, 0),
    epochChanges: first?.epochChanges ?? 0,
    quotas: quotas
      ? { drawn: quotas.status.length, local: quotas.status.filter(({ isLocal }) => isLocal).length }
      : null,
    store: {
      latencyMs: store.latencyMs === undefined ? null : Number(store.latencyMs.toFixed(2)),
      calls: sum('calls'),
      misses: sum('misses'),
      isBreakerOpen: stores.some(({ isBreakerOpen }) => isBreakerOpen),
      problem: message === undefined ? null : message.slice(0, mostText),
    },
  };
}

function toRow(lease: InspectedLease): FrameLease {
  const { pool, endpoint, held, granted, leaseAgeMs } = lease;
  return {
    ...pick(lease, 'unit', 'cap', 'inFlight', 'limit', 'safeShare', 'overAdmission'),
    name: shortenName(endpoint ?? pool),
    state: stateOf(lease),
    others: Math.max(0, held - granted),
    ageMs: leaseAgeMs === Infinity ? null : Math.round(leaseAgeMs),
  };
}

function stateOf({ leaseAgeMs, isExpired, isLearning }: InspectedLease): LeaseState {
  if (leaseAgeMs === Infinity) return 'none yet';
  if (isExpired) return 'expired';
  return isLearning ? 'learning' : 'held';
}
