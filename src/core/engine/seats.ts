/**
 * The running requests: a seat is taken at dispatch and given back at release, and every part that counts seats is told
 * here.
 *
 *     take ──► ledger ──► endpoint's seat ──► detectors ──► fairness policy's lease count
 *     giveBack undoes each of them, once
 *
 * Longer than most files, because a lease and the ledger that it stands in are one structure.
 *
 * Invariant: `inFlight` = unreleased leases = members of `running`; each holds exactly one seat on one endpoint.
 */
import { neverUnboxed } from '../../base/clock.js';
import { describeValue, FlowConfigError } from '../../base/faults/flow-config-error.js';
import { type Linked, LinkedList } from '../../base/queues/linked-list.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Endpoint, SeatPool, UnsampledSeat } from '../../endpoints/seat-pool.js';
import type { Candidate } from '../../eviction/in-flight-evictor.js';
import type { Gate } from '../../gate/gate.js';
import { checkAnswer, type SeatView, type ServerAnswer } from '../../gate/server-answer.js';
import type { Ending } from '../../tiers/2-fairness/fairness-policy.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Usage } from '../../tiers/views.js';
import type { FlowRequest } from '../flow-request.js';
import { FlowEvictedError } from '../outcome/flow-evicted-error.js';
import type { Lease } from '../outcome/lease.js';
import type { Outcome } from '../outcome/outcome.js';
import type { QueueItem } from './queue-item.js';

export class Seats {
  inFlight = 0;
  inFlightTokens = 0;
  /** Leases handed out so far, and leases that ended. */
  dispatched = 0;
  released = 0;
  /** Running requests that were asked to leave so far. Written by InFlightEviction. */
  evicted = 0;
  /** Unreleased leases, oldest first, for readers: a list costs a request less than a count for each fairness ID. */
  readonly running: LinkedList<SeatLease> = new LinkedList<SeatLease>();
  readonly pool: SeatPool;
  private readonly gate: Gate;
  private readonly onPoolChange: () => void;

  /** `onPoolChange`: the pool's listener of this controller; it is not called for a seat that is given back here. */
  constructor(pool: SeatPool, gate: Gate, onPoolChange: () => void) {
    this.pool = pool;
    this.gate = gate;
    this.onPoolChange = onPoolChange;
  }

  /** Takes a seat. `flow` is given when the fairness policy is told of the end; `owner` serves the lease's calls. */
  take(item: QueueItem, flow: Flow | undefined, endpoint: Endpoint, owner: LeaseOwner, nowMs: number): SeatLease {
    const lease = new SeatLease(owner, item, flow, endpoint, nowMs);
    const { tokens } = item;
    this.dispatched++;
    this.inFlight++;
    this.inFlightTokens += tokens;
    this.running.push(lease);
    (item.band as PriorityBand).traffic.dispatched++;
    lease.booking = this.pool.book(endpoint, tokens, nowMs);
    if (flow !== undefined) {
      flow.trackedInFlight++;
      flow.band.trackedInFlight++;
    }
    if (this.gate.hearsDispatches) this.gate.dispatched(endpoint, lease, nowMs);
    return lease;
  }

  /** Gives the seat back, and settles the request with its fairness policy. */
  giveBack(lease: SeatLease, nowMs: number, ending: Ending): void {
    const { flow, seat, item } = lease;
    this.released++;
    this.inFlight--;
    this.inFlightTokens -= item.tokens;
    this.running.remove(lease);
    if (flow !== undefined) {
      flow.trackedInFlight--;
      flow.band.trackedInFlight--;
      const how = ending === 'released' ? lease.ending : ending;
      flow.band.policies.selector?.settled(flow, lease.usage, nowMs, item.tokens, item, how);
      const isUnreported =
        flow.band.policies.ordering.hearsFirstTokens && how === 'released' && lease.usage.completionTokens === 0;
      if (isUnreported) flow.band.policies.ordering.firstToken(item, nowMs - lease.dispatchedAtMs);
    }
    if (this.gate.seats.hears.released) this.gate.seats.released(seat, nowMs, lease);
    this.pool.unbook(seat, lease.booking, item.tokens, this.onPoolChange);
  }

  /** Books the lease where the host sent its request. @throws FlowConfigError: no such endpoint, or released */
  move(lease: SeatLease, to: string | EndpointView, nowMs: number): void {
    const endpoint = destination(this.pool, lease, to);
    const { seat: from, booking } = lease;
    if (endpoint === from) return;
    moveTo(lease, endpoint);
    lease.booking = this.pool.book(endpoint, lease.tokens, nowMs);
    this.gate.seats.moved(from, endpoint, nowMs, lease);
    this.pool.unbook(from, booking, lease.tokens);
  }

  /** Tells detectors and policies what a running request has consumed: `usage` now, `total` so far. */
  consumed(lease: SeatLease, usage: Usage, total: Usage, nowMs: number): void {
    const { band, item, flow } = lease;
    if (this.gate.seats.hears.reported) this.gate.seats.tell('reported', lease.seat, nowMs, lease);
    if (flow === undefined) return;
    band.policies.selector?.consumed(flow, usage, nowMs, item, total);
    const isFirstToken = total.completionTokens > 0 && usage.completionTokens === total.completionTokens;
    if (isFirstToken && band.policies.ordering.hearsFirstTokens)
      band.policies.ordering.firstToken(item, nowMs - lease.dispatchedAtMs);
  }
}

/** The endpoint to move a lease to. @throws FlowConfigError when the pool has none, or the lease was released */
export function destination(pool: SeatPool, { isReleased }: SeatLease, to: string | EndpointView): Endpoint {
  if (isReleased) {
    throw new FlowConfigError('lease.bind', [
      { path: '', expected: 'a lease that is held', got: 'one that was released' },
    ]);
  }
  const endpoint = pool.get(typeof to === 'string' ? to : to?.id);
  if (endpoint === undefined || (typeof to !== 'string' && endpoint !== to)) {
    throw new FlowConfigError('lease.bind', [
      { path: 'endpoint', expected: 'an endpoint of the pool', got: describeValue(to) },
    ]);
  }
  return endpoint;
}

export function moveTo(lease: SeatLease, endpoint: Endpoint): void {
  lease.seat = endpoint;
}

/** The giver of a lease: the lease desk, or a shadow before it. */
export interface LeaseOwner {
  release(lease: SeatLease): void;
  bind(lease: SeatLease, endpoint: string | EndpointView): void;
  /** True when detectors hear what running requests consume. */
  readonly hearsReports: boolean;
  consumed(lease: SeatLease, usage: Usage): void;
  /** True when the answer puts the request off, so that it may wait again. */
  answered(lease: SeatLease, answer: ServerAnswer): boolean;
  endSession(lease: SeatLease): void;
  requeue(lease: SeatLease, request?: FlowRequest): Promise<Outcome>;
}

const noUsage: Usage = { promptTokens: 0, completionTokens: 0 };

/** Fields that few leases need; apart, so that the others do not carry them (bench: burst). */
class LeaseExtras {
  controller: AbortController | undefined = undefined;
  onAbort: ((reason: unknown) => void) | undefined = undefined;
  isEvictable = false;
  isEvicted = false;
  candidacy: Candidate<SeatLease> | undefined = undefined;
  isPutOff = false;
  isUnsent = false;
  isOverdue = false;
}

/** A lease with the bookkeeping behind it. */
export class SeatLease implements Lease, SeatView, Linked<SeatLease> {
  previous: SeatLease | undefined;
  next: SeatLease | undefined;
  usage: Usage;
  isReleased: boolean;
  /** It keeps its payload if an evictor or an admission policy needs that at the end. */
  readonly item: QueueItem;
  /** Set if the fairness policy of its band is told of the end. */
  readonly flow: Flow | undefined;
  /** The endpoint where the seat is booked. */
  seat: Endpoint;
  /** @internal How the endpoint's metrics learn of it; undefined where there are none. */
  booking: UnsampledSeat | undefined;
  readonly dispatchedAtMs: number;
  private readonly owner: LeaseOwner;
  private extras: LeaseExtras | undefined;

  constructor(owner: LeaseOwner, item: QueueItem, flow: Flow | undefined, seat: Endpoint, dispatchedAtMs: number) {
    this.previous = undefined;
    this.next = undefined;
    this.usage = noUsage;
    this.isReleased = false;
    this.item = item;
    this.flow = flow;
    this.seat = seat;
    this.booking = undefined;
    this.dispatchedAtMs = neverUnboxed;
    this.dispatchedAtMs = dispatchedAtMs;
    this.owner = owner;
    this.extras = undefined;
  }

  get fairnessId(): string {
    return this.item.fairnessId;
  }

  get priority(): number {
    return this.item.priority;
  }

  get tokens(): number {
    return this.item.tokens;
  }

  get band(): PriorityBand {
    return this.item.band as PriorityBand;
  }

  get isEvictable(): boolean {
    return this.extras?.isEvictable === true;
  }

  get isEvicted(): boolean {
    return this.extras?.isEvicted === true;
  }

  get candidacy(): Candidate<SeatLease> | undefined {
    return this.extras?.candidacy;
  }

  /** A lease that was a candidate once stays marked as one that may be evicted. */
  set candidacy(candidacy: Candidate<SeatLease> | undefined) {
    const own = this.own();
    own.candidacy = candidacy;
    if (candidacy !== undefined) own.isEvictable = true;
  }

  get isPutOff(): boolean {
    return this.extras?.isPutOff === true;
  }

  get isReported(): boolean {
    return this.usage !== noUsage;
  }

  get isUnsent(): boolean {
    return this.extras?.isUnsent === true;
  }

  /** How it ends unless it waits once more. Its caller did not abort a lease that was held too long. */
  get ending(): Ending {
    const { extras } = this;
    if (extras === undefined) return 'released';
    if (extras.isUnsent) return 'unsent';
    const isAborted = extras.isEvicted || extras.controller?.signal.aborted === true;
    return isAborted && !extras.isOverdue ? 'aborted' : 'released';
  }

  get isOverdue(): boolean {
    return this.extras?.isOverdue === true;
  }

  get endpoint(): EndpointView | undefined {
    return this.seat.isImplicit ? undefined : this.seat;
  }

  get signal(): AbortSignal {
    const own = this.own();
    own.controller ??= new AbortController();
    return own.controller.signal;
  }

  abort(reason?: unknown): void {
    const own = this.own();
    own.controller ??= new AbortController();
    own.controller.abort(reason);
    // Runs the listener later, so that its exception cannot stop the caller.
    if (own.onAbort) queueMicrotask(own.onAbort.bind(this, this.signal.reason));
    own.onAbort = undefined;
  }

  onAbort(listener: (reason: unknown) => void): void {
    const own = this.own();
    own.onAbort = listener;
    if (own.controller?.signal.aborted) this.abort();
  }

  /** Asks for the seat; it stays taken until `release`. */
  evict(): void {
    this.own().isEvicted = true;
    this.abort(new FlowEvictedError());
  }

  /** False when it was noted before. */
  noteOverdue(): boolean {
    const own = this.own();
    if (own.isOverdue) return false;
    own.isOverdue = true;
    return true;
  }

  bind(endpoint: string | EndpointView): void {
    this.owner.bind(this, endpoint);
  }

  report(usage: Partial<Usage>): void {
    const before = this.usage;
    const { promptTokens = before.promptTokens, completionTokens = before.completionTokens } = usage;
    const { cachedPromptTokens = before.cachedPromptTokens } = usage;
    checkTokens('promptTokens', promptTokens);
    checkTokens('completionTokens', completionTokens);
    if (cachedPromptTokens !== undefined) checkTokens('cachedPromptTokens', cachedPromptTokens);
    if (this.isReleased) return;
    this.usage =
      cachedPromptTokens === undefined
        ? { promptTokens, completionTokens }
        : { promptTokens, completionTokens, cachedPromptTokens };
    if (this.flow === undefined && !this.owner.hearsReports) return;
    this.owner.consumed(this, {
      promptTokens: promptTokens - before.promptTokens,
      completionTokens: completionTokens - before.completionTokens,
    });
  }

  answered(answer: ServerAnswer): void {
    checkAnswer(answer);
    if (!this.isReleased && this.owner.answered(this, answer)) this.own().isPutOff = true;
  }

  unsent(): void {
    this.own().isUnsent = true;
  }

  endSession(): void {
    this.owner.endSession(this);
  }

  requeue(request?: FlowRequest): Promise<Outcome> {
    if (this.isReleased || !(this.isEvicted || this.isPutOff)) {
      const got = this.isReleased ? 'one that was released' : 'one that was neither';
      const issue = { path: '', expected: 'a lease that was evicted, or put off by its server', got };
      return Promise.reject(new FlowConfigError('lease.requeue', [issue]));
    }
    this.isReleased = true;
    return this.owner.requeue(this, request);
  }

  release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    this.owner.release(this);
  }

  [Symbol.dispose](): void {
    this.release();
  }

  private own(): LeaseExtras {
    this.extras ??= new LeaseExtras();
    return this.extras;
  }
}

function checkTokens(path: string, tokens: number): void {
  if (tokens >= 0 && tokens < Number.POSITIVE_INFINITY) return;
  throw new FlowConfigError('lease.report', [{ path, expected: 'a number from 0 up', got: describeValue(tokens) }]);
}
