/**
 * The part of one shared limit that one replica may use, as the last answer says.
 *
 *     answered ── grant ──► send time + lease ── no answer ──► fallback: safe share, 0, or a limit of its own
 *
 * Invariant: the limit rises by an answer to the latest call alone; older answers promise seats that a later call has
 * given back.
 */

export type LeaseFallback = 'safe' | 'closed' | number;

export interface LeaseDemand {
  readonly inFlight: number;
  /** In flight and waiting. */
  readonly wants: number;
}

export interface Grant {
  readonly sequence: number;
  readonly grant: number;
  readonly safe: number;
  readonly epoch: number;
  readonly isLearning: boolean;
  readonly replicas: number;
  readonly limit: number;
  readonly largestLimit: number;
  readonly held: number;
  readonly target: number;
  /** The sum of the weights of all replicas that hold something, silent ones included. */
  readonly poolWeight: number;
}

export class CapacityLease {
  readonly key: string;
  readonly demand: () => LeaseDemand;
  /** The shared limit; may change at run time. */
  limit: number;
  weight: number;
  maxShare: number = Number.POSITIVE_INFINITY;
  /** The last answer; undefined before the first. */
  last: Grant | undefined = undefined;
  /** The demand and the limit that the last call reported. */
  toldWants = 0;
  toldLimit = 0;
  /** The sequence number of the last call that was answered. */
  acknowledged = 0;
  /** The instant at which the call was sent whose answer is in force. */
  answeredSentAtMs: number = Number.NEGATIVE_INFINITY;
  private readonly leaseMs: number;
  private readonly fallback: LeaseFallback;
  /** The share of a replica that never had an answer, while the store is away. */
  private readonly firstShare: number;
  /** When the first call was sent; undefined before it. */
  private firstSentAtMs: number | undefined = undefined;
  /** True once a whole lease has gone by since the first call, without an answer. */
  private isStoreAway = false;

  constructor(key: string, demand: () => LeaseDemand, { limit, weight, leaseMs, fallback, replicas }: LeaseTerms) {
    this.key = key;
    this.demand = demand;
    this.limit = limit;
    this.weight = weight;
    this.leaseMs = leaseMs;
    this.fallback = fallback;
    this.firstShare = replicas === undefined ? 0 : Math.floor(limit / replicas);
  }

  /** Seats, or tokens, that this replica may have in flight. O(1). */
  cap(nowMs: number): number {
    const { last } = this;
    if (last !== undefined && nowMs < this.answeredSentAtMs + this.leaseMs)
      return Math.min(last.grant, this.limit, this.maxShare);
    if (this.fallback === 'safe') return Math.min(this.safeShare, this.limit, this.maxShare);
    if (last === undefined && !this.isStoreAway) return 0;
    return this.fallback === 'closed' ? 0 : this.fallback;
  }

  get expiresAtMs(): number {
    return this.answeredSentAtMs + this.leaseMs;
  }

  /** The limit with the fallback `safe`. */
  get safeShare(): number {
    if (this.last !== undefined) return this.last.safe;
    return this.isStoreAway ? this.firstShare : 0;
  }

  /** Takes an answer to the latest call. */
  granted(answer: Grant, sentAtMs: number): void {
    this.last = answer;
    this.answeredSentAtMs = sentAtMs;
    this.acknowledged = answer.sequence;
  }

  asking(nowMs: number): void {
    this.firstSentAtMs ??= nowMs;
  }

  /**
   * A call got no answer. A replica that got no answer for a whole lease uses its first share from now on. It must not
   * do so sooner, because a connection takes time, and a replica that replaces a dead one would use seats that are
   * still kept for it.
   */
  missed(nowMs: number): void {
    if (this.last === undefined && this.firstSentAtMs !== undefined && nowMs >= this.firstSentAtMs + this.leaseMs)
      this.isStoreAway = true;
  }
}

export interface LeaseTerms {
  readonly limit: number;
  readonly weight: number;
  readonly leaseMs: number;
  readonly fallback: LeaseFallback;
  /** Replicas that are expected, for the share of one that has never had an answer. */
  readonly replicas: number | undefined;
}
