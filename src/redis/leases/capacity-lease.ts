/**
 * The part of one shared limit that one replica may use, as the last answer says.
 *
 *     answered ── grant ──► send time + lease ── no answer ──► fallback: safe share, 0, or a limit of its own
 *                                                  closed ──► 0
 *
 * Invariant: only an answer to the latest call raises the limit; older ones promise seats that were given back since.
 */
import type { LeaseFigures } from '../../base/lease-figures.js';
import type { LinkFigures } from '../store/store.js';
import type { StoreProblem } from '../store/store-problem.js';
import type { ParsedLeaseOptions } from './lease-options.js';

export interface LeaseDemand {
  readonly inFlight: number;
  /** In flight and waiting. */
  readonly wants: number;
  /** What others hold of the share of this replica, and what of that they keep without an answer. */
  readonly held?: number;
  readonly heldSafe?: number;
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
  /** The number of this incarnation of the name. */
  readonly birth: number;
  /** 1: another replica claims the name; 2: another has it. */
  readonly rivals: number;
  /** What other replicas lack of their parts. */
  readonly lack: number;
}

export class CapacityLease {
  readonly key: string;
  readonly demand: () => LeaseDemand;
  /** The shared limit; may change at run time. */
  limit: number;
  last: Grant | undefined = undefined;
  /** What the last call reported: the demand, the limit, and what this replica uses at most. */
  told: Readonly<Record<'inFlight' | 'wants' | 'limit' | 'cap', number>> = { inFlight: 0, wants: 0, limit: 0, cap: 0 };
  /** A call has reported it and was not answered. */
  isAsked = false;
  /** The instant at which the call was sent whose answer is in force. */
  answeredSentAtMs: number = -Infinity;
  private readonly options: ParsedLeaseOptions;
  private readonly maxShare: number;
  /** The share of a replica that never had an answer, while the store is away. */
  private readonly firstShare: number;
  private firstSentAtMs: number | undefined = undefined;
  /** True once a whole lease has gone by since the first call, without an answer. */
  private isStoreAway = false;
  private isClosed = false;

  constructor(key: string, demand: () => LeaseDemand, limit: number, options: ParsedLeaseOptions) {
    const { maxShare = Infinity, replicas } = options;
    this.key = key;
    this.demand = demand;
    this.limit = limit;
    this.options = options;
    this.maxShare = maxShare;
    this.firstShare = replicas === undefined ? 0 : Math.floor(limit / replicas);
  }

  /** Seats, or tokens, that this replica may have in flight. O(1). */
  cap(nowMs: number): number {
    const { last } = this;
    const { fallback } = this.options;
    if (this.isClosed) return 0;
    if (last !== undefined && nowMs < this.expiresAtMs) return Math.min(last.grant, this.limit, this.maxShare);
    if (fallback === 'safe') return Math.min(this.safeShare, this.limit, this.maxShare);
    if (last === undefined && !this.isStoreAway) return 0;
    return fallback === 'closed' ? 0 : fallback;
  }

  get expiresAtMs(): number {
    return this.answeredSentAtMs + this.options.leaseDuration;
  }

  get safeShare(): number {
    if (this.last !== undefined) return this.last.safe;
    return this.isStoreAway ? this.firstShare : 0;
  }

  granted(answer: Grant, sentAtMs: number): void {
    this.last = answer;
    this.answeredSentAtMs = sentAtMs;
    this.isAsked = false;
  }

  /** The call's figures, in the script's order. What is not wanted goes back at once where others lack it. */
  tell(nowMs: number, { inFlight, wants, held = 0, heldSafe = 0 }: LeaseDemand, isRemembered: boolean): number[] {
    this.firstSentAtMs ??= nowMs;
    const needed = Math.max(inFlight, wants);
    if (this.last !== undefined && this.last.lack > 0 && needed < this.last.grant)
      this.last = { ...this.last, grant: needed, safe: Math.min(this.last.safe, needed) };
    const cap = Math.ceil(Math.max(this.cap(nowMs), held));
    this.told = { inFlight, wants, limit: Math.ceil(this.limit), cap };
    this.isAsked = true;
    const { limit, safeShare, maxShare, options } = this;
    const { sequence, epoch, poolWeight, birth } = this.last ?? { sequence: 0, epoch: 0, poolWeight: 0, birth: 0 };
    const safe = Math.max(safeShare, heldSafe);
    const ours = [isRemembered ? sequence : 0, limit, options.weight, cap, inFlight, wants, safe];
    return [...ours, epoch, poolWeight, birth, Math.min(limit, maxShare)];
  }

  /** Whether half of what it had is not needed: the sooner the store is told, the sooner others have it. */
  get hasSpare(): boolean {
    const { inFlight, wants, cap } = this.told;
    return cap > 0 && 2 * Math.max(inFlight, Math.min(wants, this.last?.grant ?? 0)) <= cap;
  }

  /** Whether the store must hear of it now; otherwise a third of the lease may go by. */
  isDue(nowMs: number, wants: number): boolean {
    const { last } = this;
    if (last === undefined || this.isAsked || last.isLearning || last.lack > 0 || last.grant < wants) return true;
    const hasChanged = this.told.cap > last.grant || this.told.limit !== Math.ceil(this.limit);
    return hasChanged || nowMs >= this.answeredSentAtMs + this.options.leaseDuration / 3;
  }

  /** True for a replica that starts while the pool begins, which takes a refresh. */
  isBeginning(nowMs: number, refreshMs: number): boolean {
    const { last, firstSentAtMs = nowMs } = this;
    return last?.isLearning === true && last.grant === 0 && nowMs < firstSentAtMs + 2 * refreshMs;
  }

  /** The store knows this replica by another name from now on. */
  rename(): void {
    if (this.last !== undefined) this.last = { ...this.last, birth: 0, sequence: 0 };
  }

  close(): void {
    this.isClosed = true;
  }

  /** A replica without an answer for a whole lease uses its first share; no sooner: a dead one's seats may be kept. */
  missed(nowMs: number): void {
    const { last, firstSentAtMs = Infinity, options } = this;
    if (last === undefined && nowMs >= firstSentAtMs + options.leaseDuration) this.isStoreAway = true;
  }
}

/** One lease at one instant, for metrics, inspectors and logs. */
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

/** Of all leases of a replica. */
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
