/**
 * The walk: priority band → gate → flow → request → endpoint → dispatch.
 *
 *     intake ── may it come in? ──► backlog ── what waits ──► walk ── seats ── what runs
 *
 * *Contract*: one operation runs to its end before the next begins; a call from inside one (a policy, a listener, an
 * abort) waits for its end. Only `bind` acts at once, because its caller reads the lease next.
 * *Commitment point*: the seat is taken in the same synchronous step that decides, so that two requests never pass one
 * free slot.
 * *Work conservation and head-of-line blocking*: between operations, nothing waits in a band that the gate is open for,
 * unless the budget of this turn is spent. A request that no endpoint can take holds back its band, its flow or its
 * class, as `holBlocking` says.
 *
 * Longer than most files, because the walk and each operation that may start it share one writer.
 */
import { GuardedAdmission } from '../../admission/guarded-admission.js';
import { CoarseClock, neverUnboxed } from '../../base/clock.js';
import { AvailablePool } from '../../endpoints/available-pool.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import { Endpoint, EndpointPool } from '../../endpoints/endpoint-pool.js';
import type { ReclaimFigures } from '../../eviction/in-flight-evictor.js';
import { Gate } from '../../gate/gate.js';
import { isPuttingOff, type ServerAnswer } from '../../gate/server-answer.js';
import { BandSelector } from '../../tiers/1-priority/band-selector.js';
import type { Ending } from '../../tiers/2-fairness/fairness-policy.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Usage } from '../../tiers/views.js';
import { argumentError } from '../check-arguments.js';
import type { EventHub } from '../event-hub.js';
import { queuedEvent } from '../events.js';
import type { FlowKey, FlowRequest } from '../flow-request.js';
import type { ResolvedOptions } from '../options.js';
import type { Dispatched, DropReason, DropType, Outcome } from '../outcome/outcome.js';
import type { ShadowFigures } from '../outcome/shadow-figures.js';
import { Backlog, type BacklogListener } from './backlog.js';
import { type DropDetails, Drops, overQuota } from './drops.js';
import { GatePoller } from './gate-poller.js';
import { Intake, isRightCall } from './intake.js';
import { LeaseTracer } from './lease-tracer.js';
import type { Displacement } from './overflow.js';
import { Parking } from './parking.js';
import { Placement } from './placement.js';
import type { QueueItem, Settle } from './queue-item.js';
import { Revalidation } from './revalidation.js';
import { type SeatLease, Seats, type SeatsOwner } from './seats.js';
import { Shutdown } from './shutdown.js';
import { type SerialHost, SingleWriter } from './single-writer.js';

/** Times one operation in sixteen: timing all costs half a dispatch. */
const timedOneIn = 16;

let capturedSettle: Settle;
/** One executor for every promise, because a closure per request costs twice as much. */
const captureSettle = (settle: Settle): void => {
  capturedSettle = settle;
};

export class Engine implements SeatsOwner, SerialHost, BacklogListener {
  readonly backlog: Backlog;
  readonly seats: Seats;
  readonly gate: Gate;
  readonly placement: Placement;
  readonly selector: BandSelector;
  readonly drops: Drops;
  readonly parking: Parking;
  /** True when the last walk left requests waiting before a closed gate. */
  isGateClosed = false;
  /** True when the walk has to run: something may go now. */
  isWorkWanted = false;
  /** True in the middle of an operation, and during construction. */
  isBusy = true;
  /**
   * True when this turn of the event loop has dispatched as many waiting requests as it may; false again in the next
   * turn.
   */
  isPaused = false;

  /** In mode `shadow`, what it would have done. Written by `engineOrShadow`. */
  shadow: { readonly figures: ShadowFigures } | undefined;
  /** The pool calls it. */
  readonly onPoolChange = (): void => this.wake();
  /** The instant of the operation that is running. */
  private nowMs: number = neverUnboxed;
  private dispatchedInTurn = 0;
  /** True when tier 1 needs to know of dispatches, for shares or for an order of bands. */
  private accountsBands = false;
  private walks = 0;
  /** True when the first request of a band holds it back, and its ordering policy may give it up as time passes. */
  private mayGiveUp = false;
  /** True when the poller may need another time, because the gate or the endpoints were read. */
  private isPollDue = false;
  /** True from the moment that a request waits until the timers are stopped. */
  private hasTimers = false;
  options: ResolvedOptions;
  private readonly events: EventHub;
  private readonly clock: CoarseClock;
  private readonly intake: Intake;
  private readonly admission: GuardedAdmission;
  private readonly shutdown: Shutdown;
  readonly writer: SingleWriter;
  /** Undefined while the host has no `onDispatch`. */
  private revalidation: Revalidation | undefined;
  readonly poller: GatePoller;
  /** Undefined unless leases are traced. */
  private tracer: LeaseTracer | undefined;
  private readonly detachFromPool: () => void;

  constructor(options: ResolvedOptions, events: EventHub) {
    const { clock } = options;
    const pool = options.pool ?? EndpointPool.implicit();
    this.options = options;
    this.events = events;
    this.writer = new SingleWriter(clock, this);
    this.clock = new CoarseClock(clock, () => this.turnBegins());
    this.nowMs = this.clock.read();
    this.tracer = this.tracerFor(options);
    this.poller = new GatePoller(clock, () => this.lookAgain());
    this.shutdown = new Shutdown(clock, () => this.writer.perform(() => this.evictAll()));
    const available = pool.implicitEndpoint === undefined ? new AvailablePool(pool) : pool;
    this.backlog = new Backlog(options, events, this.clock, this, this.nowMs);
    const { bands } = this.backlog;
    this.gate = new Gate(available, bands, events, options, this.onPoolChange);
    this.noteRegime();
    this.parking = new Parking(this.backlog);
    this.seats = new Seats(pool, this.gate, events, this, options, this.onPoolChange);
    this.placement = new Placement(pool, this.gate, events, options);
    this.selector = new BandSelector(bands, this.gate, this.placement, options.bandOrder);
    this.admission = new GuardedAdmission(options.admission, available, this.gate, events);
    this.drops = new Drops(this.gate, this.admission, events);
    const { backlog, gate, placement, selector, admission, drops, parking, shutdown } = this;
    this.intake = new Intake({ backlog, gate, placement, selector, admission, drops, parking, shutdown }, options);
    this.reportFaultsOf(options);
    this.configureHooks(options);
    this.detachFromPool = pool.attach(this, clock);
    this.writer.leave();
  }

  get state(): Shutdown['state'] {
    return this.shutdown.state;
  }

  /** Calls of `enqueue` so far: each has ended or waits. */
  get enqueued(): number {
    return this.seats.dispatched + this.drops.total + this.backlog.waiting;
  }

  // Requests come in.

  /**
   * Decides now if it can, otherwise lets the request wait; `waiting` makes the request as it waits.
   * @throws (rejects) FlowConfigError for a call that cannot be right
   */
  enter(request: FlowRequest, key: FlowKey, waiting?: () => FlowRequest): Outcome | Promise<Outcome> {
    if (this.isBusy) return this.enterLater(waiting?.() ?? request, key);
    this.isBusy = true;
    try {
      this.nowMs = this.clock.readShared();
      const item = this.read(request, key);
      if (item === undefined) return Promise.reject(argumentError('enqueue', request, key));
      const outcome = this.outcomeNow(item);
      if (outcome !== undefined) return outcome;
      if (waiting !== undefined) item.restorePayload(waiting());
      const promise = new Promise<Outcome>(captureSettle);
      this.wait(item, capturedSettle);
      return promise;
    } finally {
      this.leave();
    }
  }

  /**
   * Decides now, or returns undefined and keeps nothing of the request.
   * @throws FlowConfigError for a call that cannot be right
   */
  tryEnqueue(request: FlowRequest, key: FlowKey): Outcome | undefined {
    if (this.isBusy) {
      if (!isRightCall(request, key)) throw argumentError('tryEnqueue', request, key);
      return undefined;
    }
    this.isBusy = true;
    try {
      this.nowMs = this.clock.readShared();
      const item = this.read(request, key);
      if (item === undefined) throw argumentError('tryEnqueue', request, key);
      const highest = this.selector.highestReady;
      if (highest !== undefined && highest.priority >= item.priority) this.walk();
      const outcome = this.outcomeNow(item, false);
      if (outcome === undefined) this.intake.forget(item, this.nowMs);
      return outcome;
    } finally {
      this.leave();
    }
  }

  /**
   * Takes the request in, now or after the operation that is running. Tells `decided` the outcome, undefined where the
   * request waits, and `settle` the outcome of one that waited; calls `failed` for a call that cannot be right.
   */
  watch(
    request: FlowRequest,
    key: FlowKey,
    decided: (item: QueueItem, outcome: Outcome | undefined) => void,
    settle: Settle,
    failed: () => void,
  ): void {
    this.writer.perform(() => {
      const item = this.read(request, key);
      if (item === undefined) {
        failed();
        return;
      }
      const outcome = this.outcomeNow(item);
      if (outcome === undefined) this.wait(item, settle);
      decided(item, outcome);
    });
  }

  /** For a call from inside another operation. */
  private enterLater(request: FlowRequest, given: FlowKey): Promise<Outcome> {
    if (!isRightCall(request, given)) return Promise.reject(argumentError('enqueue', request, given));
    const { fairnessId, priority } = given;
    const key: FlowKey = { fairnessId, priority };
    return new Promise((settle, reject) => {
      const decided = (_item: QueueItem, outcome: Outcome | undefined): void => {
        if (outcome !== undefined) settle(outcome);
      };
      this.watch(request, key, decided, settle, () => reject(argumentError('enqueue', request, key)));
    });
  }

  /**
   * First settles what is due, then takes the request in, because an expired request must hold no place, and a newcomer
   * must not pass requests that may go.
   */
  private read(request: FlowRequest, key: FlowKey): QueueItem | undefined {
    if (this.placement.implicitEndpoint === undefined) this.noteRegime();
    if (this.backlog.waiting > 0) {
      if (this.backlog.expiry.mayBeDue(this.nowMs)) this.evictExpired();
      if (!this.selector.isPlain) this.walk();
    }
    const item = this.intake.read(request, key, this.nowMs);
    if (this.tracer !== undefined && item !== undefined) this.tracer.arrived(item);
    return item;
  }

  /** The outcome of a request that need not wait: a drop, or a dispatch that passes no waiting request. */
  private outcomeNow(item: QueueItem, mayWait = true): Outcome | undefined {
    const answer = this.intake.decide(item, this.nowMs, this.isPaused);
    if (!this.intake.isBehind) this.isPollDue = true;
    const outcome = answer instanceof Endpoint ? this.dispatchUnqueued(item, answer) : answer;
    if (this.events.heard.enqueued && (mayWait || outcome !== undefined)) this.tellEnqueued(item, outcome);
    return outcome;
  }

  private wait(item: QueueItem, settle: Settle): void {
    const { intake, backlog } = this;
    if (intake.displaces !== undefined) this.displace(item, intake.displaces);
    if (backlog.waiting === 0) this.seats.pool.onDemand?.();
    if (intake.wantsWalk || this.seats.mayEvict) this.isWorkWanted = true;
    if (!this.isGateClosed && intake.park === undefined) this.noteGate(true);
    this.hasTimers = true;
    backlog.add(item, settle, this.nowMs, intake.flow, intake.park);
    if (intake.park !== undefined && this.parking.review(item.flow as Flow)) this.isWorkWanted = true;
    if (this.events.heard.queued)
      this.events.emit('queued', queuedEvent(item, item.band as PriorityBand, item.flow as Flow, this.nowMs));
  }

  /** Evicts requests of its own band, then of lower bands, until the request fits in. Intake knows that it will. */
  private displace(item: QueueItem, { own, limit }: Displacement): void {
    const { overflow } = this.intake;
    for (const victim of own) this.evict(victim, 'EvictedOther', 'displaced', { limit });
    for (;;) {
      const victim = overflow.nextBelow(item.priority, item.byteSize);
      if (victim === undefined) break;
      this.evict(victim, 'EvictedOther', 'displaced');
    }
    // Evicting may have idled a flow, and the flow table may then have collected the newcomer's flow.
    this.intake.forgetFlow();
  }

  private dispatchUnqueued(item: QueueItem, endpoint: Endpoint): Dispatched {
    const band = item.band as PriorityBand;
    if (!band.hearsDispatches) return this.grant(item, band, undefined, endpoint);
    const flow = this.intake.flow ?? this.backlog.flowOf(item, band, this.nowMs);
    if (flow.isIdle) this.backlog.bands.flows.markBusy(flow);
    band.dispatchedUnqueued(item, flow, this.nowMs);
    if (band.hearsSettlements) return this.grant(item, band, flow, endpoint);
    this.backlog.markIdle(flow, this.nowMs);
    return this.grant(item, band, undefined, endpoint);
  }

  // The walk.

  private walk(): void {
    if (!this.clock.tellsTurns && !this.isPaused) this.dispatchedInTurn = 0;
    this.isPollDue = true;
    const { backlog, parking } = this;
    // What became overdue since the reading that this operation shares must not go.
    if (this.clock.isBehind && backlog.expiry.isUsed) this.nowMs = this.clock.read();
    if (this.gate.judgesRequests) this.gate.forgetRoom();
    this.mayGiveUp = false;
    let floor = Number.NEGATIVE_INFINITY;
    while (backlog.waiting > 0) {
      if (this.isPaused) return;
      const band = this.nextBand(floor);
      if (band === undefined) break;
      const item = band.next(this.nowMs) as QueueItem;
      if (backlog.expiry.isDue(item, this.nowMs)) this.evictOverdue(item);
      else if (band.dropsInfeasible && band.isInfeasible(item, this.nowMs))
        this.evict(item, 'EvictedOther', 'infeasible');
      else if (
        !(parking.caps !== undefined && parking.park(item, band, parking.caps)) &&
        !this.dispatch(item, band) &&
        !this.holdBackOrDrop(item)
      ) {
        floor = band.priority;
        this.mayGiveUp ||= band.dropsInfeasible;
      }
    }
    const isClosed = backlog.waiting > backlog.bands.parked;
    if (this.isGateClosed !== isClosed) this.noteGate(isClosed);
    if (isClosed && this.seats.mayEvict && !backlog.isPoolEmpty)
      this.seats.reclaim(backlog.bands.allCompeting(), this.nowMs);
  }

  /** Tier 1 and the gate: a band above `floor` that may dispatch now. */
  private nextBand(floor: number): PriorityBand | undefined {
    if (!this.selector.isPlain) return this.selector.next(this.nowMs, floor);
    const highest = this.backlog.bands.highestWaiting;
    return highest !== undefined && highest.priority > floor && this.gate.admits(highest, this.nowMs)
      ? highest
      : undefined;
  }

  /** False when no endpoint can take the request. */
  private dispatch(item: QueueItem, band: PriorityBand): boolean {
    const endpoint = this.placement.direct ?? this.placement.choose(item, this.nowMs);
    if (endpoint === undefined) return false;
    if (this.revalidation !== undefined && this.isVoid(item, this.revalidation)) return true;
    this.spendBudget();
    const settle = this.backlog.take(item, band, this.nowMs);
    settle(this.grant(item, band, band.hearsSettlements ? item.flow : undefined, endpoint));
    return true;
  }

  /** Drops a request if the host says that it has become void while it waited. */
  private isVoid(item: QueueItem, revalidation: Revalidation): boolean {
    const detail = revalidation.objection(item);
    if (detail === undefined) return false;
    this.evict(item, 'EvictedOther', 'revoked', { detail });
    return true;
  }

  /** Takes the seat and hands out the lease. `flow` is given when its fairness policy is told of the end. */
  private grant(item: QueueItem, band: PriorityBand, flow: Flow | undefined, endpoint: Endpoint): Dispatched {
    const lease = this.seats.take(item, flow, endpoint, this.nowMs);
    if (this.accountsBands) this.accountDispatch(item, band);
    if (this.parking.caps !== undefined) this.parking.caps.taken(item);
    const queuedMs = this.nowMs - item.enqueuedAtMs;
    if (this.events.heard.dispatched)
      this.events.emit('dispatched', { item, lease, endpoint: lease.endpoint, queuedMs });
    const isNeeded = this.seats.mayEvict || this.gate.hearsAnswers || band.hearsFirstTokens;
    if (!isNeeded && (!this.admission.hearsEnds || item.admittedBy === undefined)) item.releasePayload();
    return { type: 'Dispatched', lease: this.tracer === undefined ? lease : this.tracer.handle(lease), queuedMs };
  }

  /** Tells tier 1 of a dispatch. */
  private accountDispatch(item: QueueItem, band: PriorityBand): void {
    const { bands } = this.backlog;
    if (bands.shares.isUsed) bands.shares.dispatched(band, bands.allCompeting(), item);
    const { bandOrder } = this.options;
    if (bandOrder.hearsDispatches === true) bandOrder.dispatched?.(band.priority);
  }

  /**
   * Decides what happens to a request that no endpoint can take. False when its band and those below must wait as well.
   */
  private holdBackOrDrop(item: QueueItem): boolean {
    if (!this.placement.isServed(item.requestClass)) {
      this.evict(item, 'EvictedNoEndpoints', 'no-endpoints');
      return true;
    }
    if (this.gate.judgesRequests) {
      const wait = this.placement.waitOf(item, this.nowMs);
      if (wait !== undefined && wait.notBeforeMs > this.backlog.expiry.deadlineOf(item)) {
        this.evict(item, 'EvictedOther', 'over-quota', overQuota(wait, this.nowMs));
        return true;
      }
    }
    // Foreign code may have emptied the pool in the meantime; the walk that it asked for comes next.
    return this.seats.pool.endpoints.length > 0 && this.selector.holdBack(item.flow as Flow);
  }

  /** Counts a dispatch of a waiting request. When the turn has used its budget, the others wait for the next turn. */
  private spendBudget(): void {
    this.dispatchedInTurn++;
    if (this.dispatchedInTurn >= this.options.maxDispatchesPerTurn) this.isPaused = true;
    if (!this.clock.isTurnAwaited) this.clock.awaitTurn();
  }

  private renewBudget(): void {
    this.dispatchedInTurn = 0;
    this.isPaused = false;
  }

  /** A new turn of the event loop. */
  private turnBegins(): void {
    const wasPaused = this.isPaused;
    this.renewBudget();
    if (wasPaused) this.wake();
    else if (this.hasTimers && this.backlog.waiting === 0) this.stopTimers();
  }

  // Requests end.

  release(lease: SeatLease): void {
    if (this.isBusy) {
      this.writer.perform(() => this.settleLease(lease));
      return;
    }
    this.isBusy = true;
    try {
      const isTimed =
        lease.flow !== undefined ||
        this.admission.hearsEnds ||
        this.seats.mayEvict ||
        this.gate.hearsReleases ||
        this.events.heard.released;
      // A reading of the clock is a third of an uncontended release (bench: uncontended).
      if (isTimed || this.backlog.waiting > 0) this.nowMs = this.clock.readShared();
      this.settleLease(lease);
    } finally {
      this.leave();
    }
  }

  /** A victim that produced nothing waits again, before the requests that came after it. */
  requeue(lease: SeatLease, request?: FlowRequest): Promise<Outcome> {
    return new Promise((settle) => this.writer.perform(() => this.requeueInto(settle, lease, request)));
  }

  bind(lease: SeatLease, endpoint: string | EndpointView): void {
    this.seats.move(lease, endpoint, this.options.clock.now());
  }

  consumed(lease: SeatLease, usage: Usage): void {
    const { usage: total } = lease;
    if (this.isBusy) {
      this.writer.perform(() => this.seats.consumed(lease, usage, total, this.nowMs));
      return;
    }
    this.isBusy = true;
    try {
      this.nowMs = this.clock.readShared();
      this.seats.consumed(lease, usage, total, this.nowMs);
    } finally {
      this.leave();
    }
  }

  get hearsReports(): boolean {
    return this.gate.hearsReports;
  }

  answered(lease: SeatLease, answer: ServerAnswer): void {
    if (!this.gate.hearsAnswers) return;
    if (isPuttingOff(answer) && lease.item.request !== undefined) lease.putOff();
    this.writer.perform(() => this.gate.answered(lease.seat, lease, answer, this.nowMs));
  }

  endSession(lease: SeatLease): void {
    this.writer.perform(() => this.gate.sessionEnded(lease.seat, lease, this.nowMs));
  }

  leasesDue(): void {
    this.writer.perform(() => this.seats.lookAtLeases(this.nowMs));
  }

  private tracerFor({ traceLeases }: ResolvedOptions): LeaseTracer | undefined {
    if (!traceLeases || typeof FinalizationRegistry === 'undefined') return undefined;
    const tracer = new LeaseTracer((lease) => {
      if (lease.isReleased) return;
      this.writer.perform(() => {
        tracer.tell(lease, this.events, this.nowMs);
        if (this.options.overdueLeases === 'release') lease.takeBack();
      });
    });
    return tracer;
  }

  private settleLease(lease: SeatLease, ending: Ending = 'released'): void {
    const { flow, item } = lease;
    this.seats.giveBack(lease, this.nowMs, ending);
    const { shares } = this.backlog.bands;
    if (shares.countsTokens)
      shares.settled(lease.band, this.backlog.bands.allCompeting(), item, consumedTokens(lease, ending));
    if (flow !== undefined) this.backlog.markIdle(flow, this.nowMs);
    if (this.parking.caps !== undefined) this.parking.givenBack(item, this.parking.caps);
    if (item.request !== undefined) {
      if (item.admittedBy !== undefined) this.admission.ended(item, lease.usage, this.nowMs);
      item.releasePayload();
    }
    if (this.backlog.waiting > 0) this.isWorkWanted = true;
    if (this.events.heard.released) {
      this.events.emit('released', { lease, usage: lease.usage, heldMs: this.nowMs - lease.dispatchedAtMs });
    }
  }

  private requeueInto(settle: Settle, lease: SeatLease, request?: FlowRequest): void {
    const before = lease.item;
    const item = before.again(this.nowMs, request);
    this.tracer?.inherit(item, before);
    this.settleLease(lease, 'requeued');
    const drop = this.intake.recheck(item, lease, this.nowMs);
    if (drop !== undefined) {
      settle(drop);
      return;
    }
    this.isWorkWanted = true;
    this.hasTimers = true;
    this.backlog.add(item, settle, this.nowMs);
    this.parking.review(item.flow as Flow);
    if (this.events.heard.queued)
      this.events.emit('queued', queuedEvent(item, item.band as PriorityBand, item.flow as Flow, this.nowMs));
  }

  // Waiting requests leave without a dispatch.

  /** Some request's time is up. */
  expired(): void {
    this.writer.perform(() => this.evictExpired());
  }

  cancelled(items: readonly QueueItem[]): void {
    this.writer.perform(() => {
      for (const item of items) if (item.isWaiting) this.evict(item, 'EvictedContextCancelled', 'cancelled');
    });
  }

  private evict(item: QueueItem, type: DropType, reason: DropReason, details?: DropDetails): void {
    const settle = this.backlog.discard(item, this.nowMs);
    if (item.flow?.parkedFor !== undefined) this.parking.review(item.flow);
    settle(this.drops.drop(item, type, reason, this.nowMs, details));
    this.isWorkWanted = true;
  }

  private evictExpired(): void {
    const { expiry } = this.backlog;
    for (let item = expiry.due(this.nowMs); item !== undefined; item = expiry.due(this.nowMs)) this.evictOverdue(item);
  }

  private evictOverdue(item: QueueItem): void {
    if (this.backlog.isPoolEmpty) this.evict(item, 'EvictedNoEndpoints', 'no-endpoints');
    else this.evict(item, 'EvictedTTL', 'ttl-expired');
  }

  private evictAll(): void {
    for (const item of this.backlog.items()) this.evict(item, 'EvictedOther', 'shutting-down');
  }

  // The single writer.

  /** Asks for a walk soon, because the pool, its metrics or a detector's signal changed. */
  wake(): void {
    this.isWorkWanted = true;
    if (!this.isBusy) this.writer.perform(() => {});
  }

  begin(): void {
    this.isBusy = true;
    this.nowMs = this.clock.read();
  }

  rest(): void {
    this.isBusy = false;
  }

  work(): void {
    this.isWorkWanted = false;
    if (this.placement.implicitEndpoint === undefined) this.noteRegime();
    if (!this.events.heard.walked || this.walks++ % timedOneIn !== 0) {
      this.walk();
      return;
    }
    const { clock } = this.options;
    const startedAtMs = clock.now();
    this.walk();
    this.events.emit('walked', { durationMs: clock.now() - startedAtMs });
  }

  /** Notes whether an endpoint is available. */
  private noteRegime(): void {
    const isPoolEmpty = this.gate.isPoolEmpty(this.nowMs);
    if (isPoolEmpty === this.backlog.isPoolEmpty) return;
    this.backlog.enterRegime(isPoolEmpty, this.nowMs);
    this.isWorkWanted = true;
    if (this.events.heard.regime) this.events.emit('regime', { isPoolEmpty });
  }

  end(): void {
    if (this.backlog.waiting > 0) {
      const { expiry } = this.backlog;
      if (expiry.isTimerLate) expiry.arm(this.nowMs);
      if (this.isPollDue) this.poll();
      return;
    }
    if (!this.clock.tellsTurns) this.renewBudget();
    // Requests that wait later in this turn find the timers set (bench: wake-up).
    if (this.hasTimers && !this.clock.isTurnAwaited) this.stopTimers();
    if (this.shutdown.state === 'draining') this.finish();
  }

  /**
   * Ends an operation that began by setting `isBusy`. Nearly always it left nothing more to do; then the writer is not
   * asked.
   */
  private leave(): void {
    const { writer } = this;
    try {
      if (this.isWorkWanted && !writer.hasDeferred) this.work();
      if (!this.isWorkWanted && !writer.hasDeferred) this.end();
    } finally {
      if (this.isWorkWanted || writer.hasDeferred) writer.leave();
      else this.isBusy = false;
    }
  }

  // Timers.

  private poll(): void {
    this.isPollDue = false;
    const { gate, poller, placement, seats, nowMs } = this;
    const { waiting, isPoolEmpty, bands } = this.backlog;
    // A flow at its cap waits for its own leases, whatever the gate says.
    const isGateAwaited = !isPoolEmpty && waiting > bands.parked;
    let delayMs = isGateAwaited ? gate.recheckMs : Number.POSITIVE_INFINITY;
    if (placement.implicitEndpoint === undefined) delayMs = Math.min(delayMs, placement.nextReturnAtMs(nowMs) - nowMs);
    if (seats.mayEvict && isGateAwaited) delayMs = Math.min(delayMs, seats.settlesAtMs(nowMs) - nowMs);
    delayMs = Math.min(delayMs, gate.roomAtMs - nowMs);
    if (this.mayGiveUp) delayMs = Math.min(delayMs, this.options.gate.recheckIntervalMs);
    if (this.isPaused && !this.clock.tellsTurns) delayMs = 0;
    if (poller.isSet || delayMs < Number.POSITIVE_INFINITY) poller.in(delayMs, nowMs);
  }

  private lookAgain(): void {
    if (!this.clock.tellsTurns) this.renewBudget();
    this.wake();
  }

  private stopTimers(): void {
    this.hasTimers = false;
    this.backlog.expiry.disarm();
    this.poller.stop();
  }

  private noteGate(isClosed: boolean): void {
    this.isGateClosed = isClosed;
    if (this.events.heard.gate) this.events.emit('gate', { isClosed, saturation: this.gate.saturation });
  }

  private tellEnqueued({ fairnessId, priority, sequence }: QueueItem, outcome: Outcome | undefined): void {
    if (sequence % timedOneIn !== 0) return;
    const durationMs = this.options.clock.now() - this.nowMs;
    this.events.emit('enqueued', { fairnessId, priority, outcome: outcome?.type, durationMs });
  }

  // Readings, options and the end.

  /** How full the pool is, read now; the last reading in the middle of an operation. */
  measure(): number {
    if (!this.isBusy) {
      this.writer.perform(() => {
        this.gate.measure(this.nowMs);
        // A detector that fails at this reading no longer announces its changes.
        this.isPollDue = true;
      });
    }
    return this.gate.saturation;
  }

  /** Undefined while nobody may be evicted. */
  get reclaimFigures(): ReclaimFigures | undefined {
    return this.seats.reclaimFigures(this.backlog.bands.allCompeting());
  }

  /** Takes a picture while nothing can change; in the middle of an operation it shows what is done so far. */
  look<T>(picture: (nowMs: number) => T): T {
    if (this.isBusy) return picture(this.nowMs);
    let taken: T | undefined;
    this.writer.perform(() => {
      taken = picture(this.nowMs);
    });
    return taken as T;
  }

  /**
   * Removes bands and flows that have been idle too long, so that figures do not show them. Not in the middle of an
   * operation.
   */
  collectIdle(): void {
    if (!this.isBusy) this.writer.perform(() => this.backlog.bands.collectAndSample(this.nowMs));
  }

  reconfigure(options: ResolvedOptions): void {
    this.writer.perform(() => this.apply(options));
  }

  /** Stops admission; evicts what still waits after `drainMs`. A later call can only shorten the time. */
  close(drainMs: number): Promise<void> {
    if (this.state === 'closed') return Promise.resolve();
    const closed = this.shutdown.closed();
    this.writer.perform(() => this.shutdown.drain(drainMs, this.nowMs));
    return closed;
  }

  private apply(options: ResolvedOptions): void {
    if (this.state === 'closed') return;
    this.options = options;
    this.reportFaultsOf(options);
    this.poller.stop();
    this.gate.configure(options);
    this.placement.configure(options);
    this.backlog.unparkAll();
    for (const item of this.backlog.items()) this.placement.classify(item);
    this.backlog.configure(options, this.nowMs);
    this.selector.configure(options.bandOrder);
    this.intake.configure(options);
    this.admission.configure(options.admission);
    this.seats.configure(options, this.nowMs);
    this.tracer = options.traceLeases ? (this.tracer ?? this.tracerFor(options)) : undefined;
    this.configureHooks(options);
    this.isWorkWanted = true;
  }

  /** Connects the host's functions to plugin errors. Call it before the first lookup. */
  private reportFaultsOf({ flows, bandOrder }: ResolvedOptions): void {
    flows.reportTo(this.events);
    bandOrder.reportTo?.(this.events);
  }

  /** Creates the optional parts that the options ask for. No flow may be parked. O(in flight) where flows have caps. */
  private configureHooks(options: ResolvedOptions): void {
    this.revalidation = options.onDispatch && new Revalidation(options.onDispatch, this.events);
    this.accountsBands = this.backlog.bands.shares.isUsed || options.bandOrder.hearsDispatches === true;
    this.parking.configure(options, this.seats.running);
  }

  /** Reads the settings of one fairness ID anew, and applies them to what waits of it. */
  refreshFlow(fairnessId: string): void {
    this.writer.perform(() => {
      const { flows, holBlocking } = this.options;
      flows.refresh(fairnessId);
      this.backlog.bands.flows.refresh(fairnessId, this.backlog.bands.all(), holBlocking === 'none');
      this.parking.unpark(fairnessId);
      this.isWorkWanted = true;
    });
  }

  /** The last request has left a closing controller. */
  private finish(): void {
    this.gate.stop();
    this.seats.watch?.stop();
    this.detachFromPool();
    this.shutdown.finish();
  }
}

/** Undefined if nothing was reported of a request that may have run. */
function consumedTokens({ usage, isReported, isUnsent }: SeatLease, ending: Ending): number | undefined {
  return isReported || isUnsent || ending === 'requeued' ? usage.promptTokens + usage.completionTokens : undefined;
}
