/** What a replica tells of its part of a shared limit: to metrics, inspectors and logs. */
export interface LeaseFigures {
  readonly pool: string;
  /** The endpoint, if each endpoint has a limit of its own; otherwise undefined. */
  readonly endpoint: string | undefined;
  /** The limit of all replicas together, as this replica was told. */
  readonly limit: number;
  /** The limit on what this replica has in flight now. */
  readonly cap: number;
  /** Figures of the last answer: the grant, the safe share, the number of replicas, and what all replicas hold. */
  readonly granted: number;
  readonly safeShare: number;
  readonly replicas: number;
  readonly held: number;
  readonly inFlight: number;
  /** The time since the call whose answer is in force; Infinity before the first. */
  readonly leaseAgeMs: number;
  /** True while the fallback is in force. */
  readonly isExpired: boolean;
  /** Seats in flight above the safe share while the lease is over: others may have been given these. */
  readonly overAdmission: number;
  readonly epochChanges: number;
}

/** Calls of the store. */
export interface StoreFigures {
  readonly calls: number;
  readonly misses: number;
  /** True while calls are held back because the store did not answer. */
  readonly isBreakerOpen: boolean;
  readonly breakerOpenings: number;
  /** The time that the last answered call took, ms; undefined before the first. */
  readonly latencyMs: number | undefined;
}
