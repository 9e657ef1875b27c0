/**
 * The running requests. A seat is taken at dispatch and given back at release, every part that counts seats is told
 * here, and here is all that a lease can be asked for. Each call is an operation of its own; only `bind` acts at once,
 * because its caller reads the lease next.
 *
 *     grant ── ledger ── endpoint's seat ── detectors ── parts ──► host ──► report, answered, bind, requeue ──► release undoes each, once
 *
 * Longer than most files, because a lease and the ledger that it stands in are one structure.
 * Invariant: `inFlight` = unreleased leases = members of `running`; each holds exactly one seat on one endpoint.
 */
import { neverUnboxed } from '../../base/clock.js';
import { configError, describeValue } from '../../base/faults/flow-config-error.js';
import { type Linked, LinkedList } from '../../base/queues/linked-list.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Endpoint, SeatPool, UnsampledSeat } from '../../endpoints/seat-pool.js';
import type { Candidate } from '../../eviction/in-flight-evictor.js';
import type { Gate } from '../../gate/gate.js';
import { checkAnswer, isPuttingOff, type SeatView, type ServerAnswer } from '../../gate/server-answer.js';
import type { Ending } from '../../tiers/2-fairness/fairness-policy.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Usage } from '../../tiers/views.js';
import type { EventHub } from '../event-hub.js';
import type { FlowRequest } from '../flow-request.js';
import type { ResolvedOptions } from '../options.js';
import type { Lease } from '../outcome/lease.js';
import type { Dispatched, Outcome } from '../outcome/outcome.js';
import type { Backlog } from './backlog.js';
import { LeaseWatch } from './lease-watch.js';
import type { Operation } from './operation.js';
import type { QueueItem, Settle } from './queue-item.js';

/** What options add, as far as it hears of leases. */
interface LeaseParts {
  readonly areUsed: boolean;
  readonly keepPayload: boolean;
  readonly seated: readonly { seated(lease: SeatLease): void }[];
  readonly handle: readonly { handle(lease: SeatLease): Lease }[];
  readonly ended: readonly { ended(lease: SeatLease, ending: Ending, nowMs: number): void }[];
  readonly putBack: readonly { putBack(item: QueueItem, before: QueueItem): void }[];
}

interface SeatsParts {
  readonly operation: Operation;
  readonly backlog: Backlog;
  readonly gate: Gate;
  readonly parts: LeaseParts;
  readonly events: EventHub;
  /** The pool's listener of this controller; it is not called for a seat that is given back here. */
  readonly onPoolChange: () => void;
}

type WaitAgain = (item: QueueItem, lease: SeatLease, settle: Settle) => void;

export class Seats implements LeaseOwner {
  inFlight = 0;
  inFlightTokens = 0;
  /** Leases handed out so far, and leases that ended. */
  dispatched = 0;
  released = 0;
  /** Leases that were held longer than `maxLeaseMs` so far. */
  overdue = 0;
  /** Running requests that were asked to leave so far. Written by InFlightEviction. */
  evicted = 0;
  /** Unreleased leases, oldest first, for readers: a list costs a request less than a count for each fairness ID. */
  readonly running: LinkedList<SeatLease> = new LinkedList<SeatLease>();
  readonly pool: SeatPool;
  /** Undefined without `maxLeaseMs`. */
  private watch: LeaseWatch | undefined = undefined;
  private readonly engine: SeatsParts;
  private readonly waitAgain: WaitAgain;

  /** `waitAgain` lets a request wait once more whose lease has just ended. */
  constructor(engine: SeatsParts, pool: SeatPool, options: ResolvedOptions, waitAgain: WaitAgain) {
    this.engine = engine;
    this.pool = pool;
    this.waitAgain = waitAgain;
    this.configure(options);
  }

  configure({ maxLeaseMs, overdueLeases, clock }: ResolvedOptions): void {
    this.stop();
    this.watch = undefined;
    if (maxLeaseMs === Infinity) return;
    const look = (): void => this.engine.operation.perform(() => this.lookAtLeases());
    this.watch = new LeaseWatch(maxLeaseMs, overdueLeases === 'release', clock, look);
    this.lookAtLeases();
  }

  /** Stops for good: another watch takes its place, or the controller is closed. */
  stop(): void {
    this.watch?.stop();
  }

  /** Tells of leases that are held too long, and sets the timer for the next. */
  private lookAtLeases(): void {
    const { events, operation } = this.engine;
    if (this.watch !== undefined) this.overdue += this.watch.look(this.running.first, events, operation.nowMs);
  }

  /** Takes the seat and hands out the lease. `flow` is given when its fairness policy is told of the end. */
  grant(item: QueueItem, band: PriorityBand, flow: Flow | undefined, endpoint: Endpoint): Dispatched {
    const { operation, gate, parts, events } = this.engine;
    const { nowMs } = operation;
    const { tokens } = item;
    const lease = new SeatLease(this, item, flow, endpoint, nowMs);
    this.dispatched++;
    this.inFlight++;
    this.inFlightTokens += tokens;
    this.running.push(lease);
    band.traffic.dispatched++;
    lease.booking = this.pool.book(endpoint, tokens, nowMs);
    if (flow !== undefined) {
      flow.trackedInFlight++;
      flow.band.trackedInFlight++;
    }
    if (gate.hearsDispatches) gate.dispatched(endpoint, lease, nowMs);
    if (this.watch !== undefined && !this.watch.isSet) this.watch.wait(0);
    const queuedMs = nowMs - item.enqueuedAtMs;
    const given = parts.areUsed ? this.tellSeated(lease) : lease;
    if (events.heard.dispatched) events.emit('dispatched', { item, lease: given, endpoint: lease.endpoint, queuedMs });
    const isKept = parts.areUsed && (parts.keepPayload || item.admittedBy !== undefined);
    if (!isKept && !gate.seats.hears.answered && !band.policies.ordering.hearsFirstTokens) item.releasePayload();
    return { type: 'Dispatched', lease: given, queuedMs };
  }

  release(lease: SeatLease): void {
    const { operation, gate, backlog, parts, events } = this.engine;
    if (operation.isBusy) return void operation.perform(() => this.settle(lease));
    // A reading of the clock is a third of an uncontended release (bench: uncontended).
    const isTimed = lease.flow !== undefined || parts.ended.length > 0 || gate.seats.hears.released;
    operation.begin(isTimed || events.heard.released || backlog.waiting > 0);
    try {
      this.settle(lease);
    } finally {
      operation.leave();
    }
  }

  /** A victim that produced nothing waits again, before the requests that came after it. */
  requeue(lease: SeatLease, request?: FlowRequest): Promise<Outcome> {
    const { operation, parts } = this.engine;
    return new Promise((resolve) =>
      operation.perform(() => {
        const before = lease.item;
        const item = before.again(operation.nowMs, request);
        for (const part of parts.putBack) part.putBack(item, before);
        this.settle(lease, 'requeued');
        this.waitAgain(item, lease, resolve);
      }),
    );
  }

  /** Books the lease where the host sent its request. @throws FlowConfigError: no such endpoint, or released */
  bind(lease: SeatLease, to: string | EndpointView): void {
    const endpoint = destination(this.pool, lease, to);
    const { seat: from, booking } = lease;
    if (endpoint === from) return;
    const nowMs = this.engine.operation.now();
    moveTo(lease, endpoint);
    lease.booking = this.pool.book(endpoint, lease.tokens, nowMs);
    this.engine.gate.seats.moved(from, endpoint, nowMs, lease);
    this.pool.unbook(from, booking, lease.tokens);
  }

  get hearsReports(): boolean {
    const { gate, events } = this.engine;
    return gate.seats.hears.reported || events.heard.firstToken;
  }

  consumed(lease: SeatLease, usage: Usage): void {
    const { operation } = this.engine;
    const { usage: total } = lease;
    if (operation.isBusy) return void operation.perform(() => this.tellConsumed(lease, usage, total));
    operation.begin();
    try {
      this.tellConsumed(lease, usage, total);
    } finally {
      operation.leave();
    }
  }

  answered(lease: SeatLease, answer: ServerAnswer): boolean {
    const { operation, gate } = this.engine;
    if (!gate.seats.hears.answered) return false;
    const isPutOff = isPuttingOff(answer) && lease.item.request !== undefined;
    operation.perform(() => gate.answered(lease.seat, lease, answer, operation.nowMs));
    return isPutOff;
  }

  endSession(lease: SeatLease): void {
    const { operation, gate } = this.engine;
    operation.perform(() => gate.seats.tell('sessionEnded', lease.seat, operation.nowMs, lease));
  }

  private tellSeated(lease: SeatLease): Lease {
    const { parts } = this.engine;
    for (const part of parts.seated) part.seated(lease);
    let given: Lease = lease;
    for (const part of parts.handle) given = part.handle(lease);
    return given;
  }

  /** Tells detectors and policies what a running request has consumed: `usage` now, `total` so far. */
  private tellConsumed(lease: SeatLease, usage: Usage, total: Usage): void {
    const { gate, operation, events } = this.engine;
    const { nowMs } = operation;
    const { band, item, flow } = lease;
    if (gate.seats.hears.reported) gate.seats.tell('reported', lease.seat, nowMs, lease);
    const isFirstToken = total.completionTokens > 0 && usage.completionTokens === total.completionTokens;
    const afterMs = nowMs - lease.dispatchedAtMs;
    if (isFirstToken && events.heard.firstToken) events.emit('firstToken', { lease: lease.face, afterMs });
    if (flow === undefined) return;
    band.policies.selector?.consumed(flow, usage, nowMs, item, total);
    if (isFirstToken && band.policies.ordering.hearsFirstTokens) band.policies.ordering.firstToken(item, afterMs);
  }

  /** Gives the seat back. */
  private settle(lease: SeatLease, ending: Ending = 'released'): void {
    const { operation, backlog, gate, parts, events, onPoolChange } = this.engine;
    const { flow, item, seat } = lease;
    const { nowMs } = operation;
    this.released++;
    this.inFlight--;
    this.inFlightTokens -= item.tokens;
    this.running.remove(lease);
    if (flow !== undefined) tellFlow(lease, flow, ending, nowMs);
    if (gate.seats.hears.released) gate.seats.released(seat, nowMs, lease);
    this.pool.unbook(seat, lease.booking, item.tokens, onPoolChange);
    if (flow !== undefined) backlog.bands.flows.markIdle(flow, nowMs);
    if (parts.areUsed) for (const part of parts.ended) part.ended(lease, ending, nowMs);
    if (item.request !== undefined) item.releasePayload();
    if (backlog.waiting > 0) operation.want();
    if (events.heard.released)
      events.emit('released', { lease: lease.face, usage: lease.usage, heldMs: nowMs - lease.dispatchedAtMs });
  }
}

/** Settles the request with its policies. */
function tellFlow(lease: SeatLease, flow: Flow, ending: Ending, nowMs: number): void {
  const { item, usage } = lease;
  const { band } = flow;
  flow.trackedInFlight--;
  band.trackedInFlight--;
  const how = ending === 'released' ? lease.ending : ending;
  band.policies.selector?.settled(flow, usage, nowMs, item.tokens, item, how);
  const isUnreported = band.policies.ordering.hearsFirstTokens && how === 'released' && usage.completionTokens === 0;
  if (isUnreported) band.policies.ordering.firstToken(item, nowMs - lease.dispatchedAtMs);
}

/** The endpoint to move a lease to. @throws FlowConfigError when the pool has none, or the lease was released */
export function destination(pool: SeatPool, { isReleased }: SeatLease, to: string | EndpointView): Endpoint {
  if (isReleased) throw configError('lease.bind', '', 'a lease that is held', 'one that was released');
  const endpoint = typeof to === 'string' ? pool.get(to) : pool.member(to ?? undefined);
  if (endpoint !== undefined) return endpoint;
  throw configError('lease.bind', 'endpoint', 'an endpoint of the pool', describeValue(to));
}

export function moveTo(lease: SeatLease, endpoint: Endpoint): void {
  lease.seat = endpoint;
}

/** The giver of a lease: the seats, or a shadow before them. */
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
  /** Written by InFlightEviction. */
  isEvicted = false;
  /** Noted of what may be evicted; nobody else asks. */
  hasAnswer = false;
  candidacy: Candidate<SeatLease> | undefined = undefined;
  isPutOff = false;
  isUnsent = false;
  isOverdue = false;
  /** What the host has instead of the lease. Written by LeaseTracer. */
  handle: WeakRef<Lease> | undefined = undefined;
}

/** A lease with the bookkeeping behind it. */
export class SeatLease implements Lease, SeatView, Linked<SeatLease> {
  previous: SeatLease | undefined = undefined;
  next: SeatLease | undefined = undefined;
  usage: Usage = noUsage;
  isReleased = false;
  /** It keeps its payload if an evictor or an admission policy needs that at the end. */
  readonly item: QueueItem;
  /** Set if the fairness policy of its band is told of the end. */
  readonly flow: Flow | undefined;
  /** The endpoint where the seat is booked. */
  seat: Endpoint;
  /** @internal How the endpoint's metrics learn of it; undefined where there are none. */
  booking: UnsampledSeat | undefined = undefined;
  readonly dispatchedAtMs: number;
  private readonly owner: LeaseOwner;
  extras: LeaseExtras | undefined = undefined;

  constructor(owner: LeaseOwner, item: QueueItem, flow: Flow | undefined, seat: Endpoint, dispatchedAtMs: number) {
    this.item = item;
    this.flow = flow;
    this.seat = seat;
    this.dispatchedAtMs = neverUnboxed;
    this.dispatchedAtMs = dispatchedAtMs;
    this.owner = owner;
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

  get face(): Lease {
    return this.extras?.handle?.deref() ?? this;
  }

  get isEvicted(): boolean {
    return this.extras?.isEvicted === true;
  }

  get candidacy(): Candidate<SeatLease> | undefined {
    return this.extras?.candidacy;
  }

  /** A lease that was a candidate once stays marked as one that may be evicted. */
  set candidacy(candidacy: Candidate<SeatLease> | undefined) {
    const extras = own(this);
    extras.candidacy = candidacy;
    if (candidacy !== undefined) extras.isEvictable = true;
  }

  get hasAnswer(): boolean {
    return this.extras?.hasAnswer === true || this.usage.completionTokens > 0;
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
    const extras = own(this);
    extras.controller ??= new AbortController();
    return extras.controller.signal;
  }

  abort(reason?: unknown): void {
    const extras = own(this);
    extras.controller ??= new AbortController();
    extras.controller.abort(reason);
    // Runs the listener later, so that its exception cannot stop the caller.
    if (extras.onAbort) queueMicrotask(extras.onAbort.bind(this, this.signal.reason));
    extras.onAbort = undefined;
  }

  onAbort(listener: (reason: unknown) => void): void {
    const extras = own(this);
    extras.onAbort = listener;
    if (extras.controller?.signal.aborted) this.abort();
  }

  /** False when it was noted before. */
  noteOverdue(): boolean {
    const extras = own(this);
    if (extras.isOverdue) return false;
    extras.isOverdue = true;
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
    if (this.isReleased) return;
    if (this.owner.answered(this, answer)) own(this).isPutOff = true;
    else if (this.extras !== undefined) this.extras.hasAnswer = true;
  }

  unsent(): void {
    own(this).isUnsent = true;
  }

  endSession(): void {
    this.owner.endSession(this);
  }

  requeue(request?: FlowRequest): Promise<Outcome> {
    if (this.isReleased || !(this.isEvicted || this.isPutOff)) {
      const got = this.isReleased ? 'one that was released' : 'one that was neither';
      const expected = 'a lease that was evicted, or put off by its server';
      return Promise.reject(configError('lease.requeue', '', expected, got));
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
}

export function own(lease: SeatLease): LeaseExtras {
  lease.extras ??= new LeaseExtras();
  return lease.extras;
}

function checkTokens(path: string, tokens: number): void {
  if (tokens >= 0 && tokens < Infinity) return;
  throw configError('lease.report', path, 'a number from 0 up', describeValue(tokens));
}
