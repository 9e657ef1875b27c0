/**
 * The walk: priority band → flow → request → gate → dispatch, and every way out of the queue. Larger than most files because it is the
 * one place where state changes.
 *
 * The walk runs at the end of every operation that may have opened the gate or brought work; SingleWriter lets one operation run at a
 * time.
 *
 * Invariant, between operations: while the gate is open for a band, nothing waits in it.
 */

import type { Refusal } from '../../admission/admission-policy.js';
import { GuardedAdmission } from '../../admission/guarded-admission.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import { type Endpoint, EndpointPool } from '../../endpoints/endpoint-pool.js';
import { InFlightEvictor, type ReclaimFigures } from '../../eviction/in-flight-evictor.js';
import { Gate } from '../../gate/gate.js';
import { BandSelector } from '../../tiers/1-priority/band-selector.js';
import { BandRegistry } from '../../tiers/band-registry.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Usage } from '../../tiers/views.js';
import type { WaitingItem } from '../../tiers/waiting-item.js';
import type { EventHub } from '../event-hub.js';
import { queuedEvent } from '../events.js';
import type { FlowRequest } from '../flow-request.js';
import type { ResolvedOptions } from '../options.js';
import { DropOutcome } from '../outcome/drop-outcome.js';
import type { LimitHit } from '../outcome/limit-hit.js';
import type { Dispatched, Drop, DropReason, DropType, Outcome, OutcomeType } from '../outcome/outcome.js';
import { Cancellation } from './cancellation.js';
import { exceededLimit, isUnlimited } from './capacity-limits.js';
import { type Budgets, Expiry } from './expiry.js';
import { GatePoller } from './gate-poller.js';
import { InFlightLedger } from './in-flight-ledger.js';
import { Placement } from './placement.js';
import { QueueItem, type Settle } from './queue-item.js';
import { type LeaseOwner, SeatLease } from './seat-lease.js';
import { Shutdown } from './shutdown.js';
import { type SerialHost, SingleWriter } from './single-writer.js';
import { Turn } from './turn.js';

/** Timing all would cost as much as half a dispatch. */
const timedOneIn = 16;

/** What a drop tells beside its reason. */
type DropDetails = Pick<Drop, 'limit' | 'policy' | 'detail' | 'retryAfterMs'>;
const noDetails: DropDetails = {};

let capturedSettle: Settle;
/** One executor for every promise: no closure per request. */
const captureSettle = (settle: Settle): void => {
  capturedSettle = settle;
};

export class Dispatcher implements Budgets, LeaseOwner, SerialHost {
  waiting = 0;
  waitingBytes = 0;
  enqueued = 0;
  released = 0;
  readonly outcomes: Record<OutcomeType, number> = {
    Dispatched: 0,
    RejectedCapacity: 0,
    RejectedNoEndpoints: 0,
    RejectedOther: 0,
    EvictedTTL: 0,
    EvictedNoEndpoints: 0,
    EvictedContextCancelled: 0,
    EvictedOther: 0,
  };
  readonly keeper: BandRegistry;
  readonly gate: Gate;
  readonly ledger: InFlightLedger;
  readonly placement: Placement;
  /** Running requests asked to leave so far. */
  evictedInFlight = 0;
  /** True when the last walk left requests waiting before a closed gate. */
  isGateClosed = false;

  private nowMs: number;
  /** True when the walk has to run: something may go now. */
  isWorkWanted = false;
  private sequence = 0;
  private isPoolEmpty: boolean;
  private poolFlippedAtMs = Number.NEGATIVE_INFINITY;
  private walks = 0;
  private readonly turn: Turn;
  readonly choice: BandSelector;
  private readonly shutdown: Shutdown;
  private readonly desk: GuardedAdmission;
  private evictor: InFlightEvictor<SeatLease> | undefined;
  private readonly writer: SingleWriter;
  private readonly recheck: GatePoller;
  readonly expiry: Expiry;
  private readonly cancellation: Cancellation;
  private readonly onPoolChange = (): void => this.wake();
  private readonly detachFromPool: () => void;
  private options: ResolvedOptions;
  private readonly events: EventHub;

  constructor(options: ResolvedOptions, events: EventHub) {
    this.options = options;
    this.events = events;
    const { clock } = options;
    const pool = options.pool ?? EndpointPool.implicit();
    this.writer = new SingleWriter(clock, this);
    this.turn = new Turn(clock, (wasSpent) => {
      if (wasSpent) this.wake();
      else if (this.waiting === 0) this.stopTimers();
    });
    this.nowMs = this.turn.instant;
    this.recheck = new GatePoller(clock, () => {
      if (!this.turn.renewsItself) this.turn.renew();
      this.wake();
    });
    this.isPoolEmpty = pool.endpoints.length === 0;
    this.keeper = new BandRegistry(options, events, this.nowMs);
    this.gate = new Gate(pool, this.keeper.table, events, options, () => this.wake());
    this.ledger = new InFlightLedger(pool, this.gate, this.onPoolChange);
    this.placement = new Placement(pool, this.gate, events, options);
    this.choice = new BandSelector(this.keeper, this.gate, this.placement, options);
    this.shutdown = new Shutdown(clock, () => this.writer.perform(() => this.evictAll()));
    this.desk = new GuardedAdmission(options.admission, pool, this.gate, events);
    this.evictor = options.eviction && new InFlightEvictor(options.eviction, events);
    this.expiry = new Expiry(clock, this, () => this.writer.perform(() => this.evictExpired()));
    this.cancellation = new Cancellation((items) => this.writer.perform(() => this.evictCancelled(items)));
    this.detachFromPool = pool.attach(this.onPoolChange, () => clock.now());
    this.writer.leave();
  }

  get state(): Shutdown['state'] {
    return this.shutdown.state;
  }

  /** Decides now if it can, otherwise lets the request wait. */
  enqueue(request: FlowRequest, fairnessId: string, priority: number): Promise<Outcome> {
    if (this.writer.isBusy) {
      return new Promise((settle) => this.writer.perform(() => this.enqueueInto(settle, request, fairnessId, priority)));
    }
    this.writer.enter();
    try {
      this.nowMs = this.turn.readShared();
      const item = this.makeItem(request, fairnessId, priority);
      const outcome = this.judge(item);
      if (outcome !== undefined) {
        if (this.events.heard.enqueued) this.tellEnqueued(item, outcome);
        return Promise.resolve(outcome);
      }
      const promise = new Promise<Outcome>(captureSettle);
      this.letWait(item, capturedSettle);
      if (this.events.heard.enqueued) this.tellEnqueued(item, undefined);
      return promise;
    } finally {
      this.writer.leave();
    }
  }

  /** Decides now, or returns undefined and forgets the request. */
  tryEnqueue(request: FlowRequest, fairnessId: string, priority: number): Outcome | undefined {
    if (this.writer.isBusy) return undefined;
    this.writer.enter();
    try {
      this.nowMs = this.turn.readShared();
      const highest = this.choice.highestReady;
      if (highest !== undefined && highest.priority >= priority) this.walk();
      const item = this.makeItem(request, fairnessId, priority);
      const outcome = this.judge(item);
      if (outcome === undefined) {
        this.enqueued--;
        this.giveBackAdmission(item, undefined);
      } else if (this.events.heard.enqueued) this.tellEnqueued(item, outcome);
      return outcome;
    } finally {
      this.writer.leave();
    }
  }

  release(lease: SeatLease): void {
    if (this.writer.isBusy) {
      this.writer.perform(() => this.settleLease(lease));
      return;
    }
    this.writer.enter();
    try {
      // A reading of the clock is a third of an uncontended release (bench: uncontended).
      if (this.waiting > 0 || this.isTimed(lease)) this.nowMs = this.turn.readShared();
      this.settleLease(lease);
    } finally {
      this.writer.leave();
    }
  }

  requeue(lease: SeatLease): Promise<Outcome> {
    return new Promise((settle) => this.writer.perform(() => this.putBack(lease, settle)));
  }

  bind(lease: SeatLease, endpoint: string | EndpointView): void {
    this.ledger.move(lease, endpoint, this.options.clock.now());
  }

  consumed(lease: SeatLease, usage: Usage): void {
    this.writer.perform(() => lease.band.consumed(lease.flow as Flow, usage, this.nowMs));
  }

  /** Walks soon: the pool, its metrics or a detector's signal changed. */
  wake(): void {
    this.isWorkWanted = true;
    if (!this.writer.isBusy) this.writer.perform(() => {});
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

  /** Forgets what has been idle too long, so that figures do not show it. Not in the middle of an operation. */
  collectIdle(): void {
    if (!this.writer.isBusy) this.writer.perform(() => this.keeper.collect(this.nowMs));
  }

  /** Undefined while nobody may be evicted. */
  get reclaimFigures(): ReclaimFigures | undefined {
    return this.evictor?.figures(this.keeper.table.allWaiting(), this.gate);
  }

  /** How full the pool is, read now; the last reading in the middle of an operation. */
  measure(): number {
    if (!this.writer.isBusy) this.writer.perform(() => this.gate.measure(this.nowMs));
    return this.gate.saturation;
  }

  // What the single writer asks for.

  begin(): void {
    this.nowMs = this.turn.read();
  }

  work(): void {
    this.isWorkWanted = false;
    this.noticeRegime();
    if (!this.events.heard.walked || this.walks++ % timedOneIn !== 0) {
      this.walk();
      return;
    }
    const { clock } = this.options;
    const startedAtMs = clock.now();
    this.walk();
    this.events.emit('walked', { durationMs: clock.now() - startedAtMs });
  }

  end(): void {
    if (this.waiting > 0) {
      this.expiry.arm(this.nowMs);
      this.recheck.in(this.recheckMs(), this.nowMs);
      return;
    }
    if (!this.turn.renewsItself) this.turn.renew();
    // What waits next in this turn finds them set (bench: wake-up).
    if (!this.turn.isMarked) this.stopTimers();
    if (this.state === 'draining') this.finish();
  }

  private stopTimers(): void {
    this.expiry.disarm();
    this.recheck.stop();
  }

  /** Ms until what waits should be looked at again although nothing was announced; Infinity: not at all. */
  private recheckMs(): number {
    if (this.turn.isSpent && !this.turn.renewsItself) return 0;
    let delayMs = Math.min(this.gate.recheckMs, this.placement.nextReturnAtMs(this.nowMs) - this.nowMs);
    if (this.evictor !== undefined && !this.isPoolEmpty) delayMs = Math.min(delayMs, this.evictor.settlesAtMs - this.nowMs);
    return delayMs;
  }

  // The way in.

  private makeItem(request: FlowRequest, fairnessId: string, priority: number): QueueItem {
    this.enqueued++;
    const nowMs = this.turn.instant;
    this.keeper.collectWhenDue(nowMs);
    const band = this.keeper.table.get(priority);
    band?.arrivalRate.record(nowMs);
    const { ttlMs = (band?.settings ?? this.keeper.settingsOf(priority)).requestTtlMs } = request;
    const untilExpiryMs = ttlMs === 0 ? Number.POSITIVE_INFINITY : ttlMs;
    return new QueueItem(request, band, fairnessId, priority, this.sequence++, nowMs, untilExpiryMs);
  }

  private enqueueInto(settle: Settle, request: FlowRequest, fairnessId: string, priority: number): void {
    const item = this.makeItem(request, fairnessId, priority);
    const outcome = this.judge(item);
    if (outcome !== undefined) settle(outcome);
    else this.letWait(item, settle);
    if (this.events.heard.enqueued) this.tellEnqueued(item, outcome);
  }

  private tellEnqueued({ fairnessId, priority, sequence }: QueueItem, outcome: Outcome | undefined): void {
    if (sequence % timedOneIn !== 0) return;
    const durationMs = this.options.clock.now() - this.nowMs;
    this.events.emit('enqueued', { fairnessId, priority, outcome: outcome?.type, durationMs });
  }

  /** The outcome of a request that need not wait: a rejection, or a dispatch that overtakes nobody. */
  private judge(item: QueueItem): Outcome | undefined {
    const rejection = this.turnAway(item);
    if (rejection !== undefined) return rejection;
    const band = item.band as PriorityBand;
    if (this.options.mode === 'admission') return this.passOn(item, band);
    const limit = this.limitHitBy(item, band);
    const capacityDrop = limit && this.overLimit(item, band, limit);
    if (capacityDrop !== undefined) return capacityDrop;
    band.lastUsedMs = this.nowMs;
    if (this.mustWait(item, band)) return undefined;
    const endpoint = this.gate.admits(band, this.nowMs) ? this.placement.choose(item, this.nowMs) : undefined;
    return endpoint && this.grant(item, band, this.passThrough(item, band), endpoint);
  }

  /** The drop of a request that may not come in, whatever waits; otherwise its band is known afterwards. */
  private turnAway(item: QueueItem): Drop | undefined {
    if (this.state !== 'open') return this.drop(item, 'RejectedOther', 'shutting-down');
    if (item.request?.signal?.aborted === true) return this.drop(item, 'RejectedOther', 'cancelled');
    if (this.desk.policy !== undefined) {
      const refusal = this.desk.refusal(item.request, item, this.nowMs, this.waiting);
      if (refusal !== undefined) return this.refuse(item, refusal);
      item.admittedBy = this.desk.admittedBy;
    }
    item.band ??= this.keeper.bandOf(item.priority, this.nowMs);
    if (item.band === undefined) return this.drop(item, this.capacityDrop(), 'max-bands');
    if (!this.placement.tellsClasses) return undefined;
    item.requestClass = this.placement.classOf(item);
    return this.placement.isServed(item.requestClass) ? undefined : this.drop(item, 'RejectedNoEndpoints', 'no-endpoints');
  }

  /** The drop of a request that hit a limit, unless room can be made for it. */
  private overLimit(item: QueueItem, band: PriorityBand, hit: LimitHit): Drop | undefined {
    let limit: LimitHit | undefined = hit;
    if (this.expiry.due(this.nowMs) !== undefined) {
      // The timer is late; those whose time is up hold no place.
      this.evictExpired();
      limit = this.limitHitBy(item, band);
    }
    if (limit === undefined || this.makeRoom(item, band, limit)) return undefined;
    return this.drop(item, this.capacityDrop(), `${limit.scope}-max-${limit.resource}`, { limit });
  }

  /** True when others go first. */
  private mustWait(item: QueueItem, band: PriorityBand): boolean {
    // Where a lower band may come first, or held requests may, they must not be overtaken by what comes before the gate was looked at again.
    if (this.waiting > 0 && (!this.choice.isStrict || this.choice.holds)) this.walk();
    // In a pause what is held back has not been let out yet.
    const highest = this.turn.isSpent ? this.keeper.table.highestWaiting : this.choice.highestReady;
    if (highest !== undefined && highest.priority >= item.priority) {
      // Where every change announces itself, the gate is as closed as it was (bench: burst).
      if (this.gate.recheckMs < Infinity || this.evictor !== undefined) this.isWorkWanted = true;
      return true;
    }
    return band.held.waiting > 0 && this.flowFor(item, band).heldIn !== undefined;
  }

  /** Mode `admission`: what was admitted goes, however full the pool is. */
  private passOn(item: QueueItem, band: PriorityBand): Outcome {
    band.lastUsedMs = this.nowMs;
    const endpoint = this.placement.choose(item, this.nowMs);
    if (endpoint === undefined) {
      return this.isPoolEmpty ? this.drop(item, 'RejectedNoEndpoints', 'no-endpoints') : this.drop(item, 'RejectedCapacity', 'overloaded');
    }
    return this.grant(item, band, this.passThrough(item, band), endpoint);
  }

  private refuse(item: QueueItem, { reason, cause, retryAfterMs, policy = this.desk.policy?.type }: Refusal): Drop {
    const because: DropDetails = { policy, detail: reason, retryAfterMs };
    return this.drop(item, 'RejectedCapacity', cause === 'overloaded' ? 'overloaded' : 'refused', because);
  }

  /**
   * Lets the newest requests of lower sheddable bands leave until this one fits into the global limits. Nobody leaves in vain: false
   * when even all of them would not make room. O(victims).
   */
  private makeRoom(item: QueueItem, band: PriorityBand, limit: LimitHit): boolean {
    if (this.options.overflow !== 'displace' || limit.scope !== 'global' || this.ownLimitHitBy(item, band) !== undefined) return false;
    const rest = { waiting: this.waiting, waitingBytes: this.waitingBytes };
    for (const lower of this.keeper.table.allWaiting()) {
      if (lower.priority >= 0 || lower.priority >= item.priority) continue;
      rest.waiting -= lower.waiting;
      rest.waitingBytes -= lower.waitingBytes;
    }
    const { limits } = this.options;
    if (exceededLimit('global', rest, limits, item.byteSize) !== undefined) return false;
    while (exceededLimit('global', this, limits, item.byteSize) !== undefined) {
      const victim = this.keeper.table.lowestWaiting?.newest;
      if (victim === undefined) return false;
      this.evict(victim as QueueItem, 'EvictedOther', 'displaced');
    }
    return true;
  }

  private capacityDrop(): DropType {
    return this.isPoolEmpty ? 'RejectedNoEndpoints' : 'RejectedCapacity';
  }

  private limitHitBy(item: QueueItem, band: PriorityBand): LimitHit | undefined {
    return exceededLimit('global', this, this.options.limits, item.byteSize) ?? this.ownLimitHitBy(item, band);
  }

  /** The limits of its band and of its flow. */
  private ownLimitHitBy(item: QueueItem, band: PriorityBand): LimitHit | undefined {
    const hit = exceededLimit('band', band, band.settings.limits, item.byteSize);
    const { flows } = this.options;
    const flowLimits = (flows.size > 0 ? flows.get(item.fairnessId)?.limits : undefined) ?? band.settings.flowLimits;
    if (hit !== undefined || isUnlimited(flowLimits)) return hit;
    return exceededLimit('flow', this.flowFor(item, band), flowLimits, item.byteSize);
  }

  /** Keeps the fairness policy informed of a request that never waits; returns its flow when the lease must remember it. */
  private passThrough(item: QueueItem, band: PriorityBand): Flow | undefined {
    if (!band.hearsDispatches) return undefined;
    const flow = this.flowFor(item, band);
    this.keeper.flows.becameBusy(flow);
    band.passedThrough(item, flow, this.nowMs);
    return this.track(flow);
  }

  private flowFor(item: QueueItem, band: PriorityBand): Flow {
    const requestClass = this.options.holBlocking === 'none' ? item.requestClass : undefined;
    return this.keeper.flows.flowOf(band, item.fairnessId, this.nowMs, requestClass);
  }

  private letWait(item: QueueItem, settle: Settle): void {
    const band = item.band as PriorityBand;
    const flow = this.flowFor(item, band);
    this.keeper.flows.becameBusy(flow);
    item.settle = settle;
    // What waits behind others changes nothing, unless the others are held back.
    if (band.ready === 0) this.isWorkWanted = true;
    if (band.waiting === 0) this.keeper.table.activated(band);
    this.noteGate(true);
    this.waiting++;
    this.waitingBytes += item.byteSize;
    band.add(item, flow);
    this.expiry.add(item);
    const signal = item.request?.signal;
    if (signal !== undefined) this.cancellation.watch(item, signal);
    if (this.events.heard.queued) this.events.emit('queued', queuedEvent(item, band, flow, this.nowMs));
  }

  /** A victim that produced nothing waits again, ahead of what came after it. */
  private putBack(lease: SeatLease, settle: Settle): void {
    const before = lease.item;
    const item = before.again(this.nowMs);
    before.admittedBy = undefined;
    this.settleLease(lease);
    this.enqueued++;
    if (this.state !== 'open') settle(this.drop(item, 'RejectedOther', 'shutting-down'));
    else if (item.request?.signal?.aborted === true) settle(this.drop(item, 'RejectedOther', 'cancelled'));
    else if (before.isRequeued || lease.usage.completionTokens > 0) settle(this.drop(item, 'EvictedOther', 'evicted'));
    else {
      item.band = this.keeper.bandOf(item.priority, this.nowMs);
      // The filters may have been replaced meanwhile.
      item.requestClass = this.placement.classOf(item);
      if (item.band === undefined) settle(this.drop(item, this.capacityDrop(), 'max-bands'));
      else this.letWait(item, settle);
    }
  }

  // The walk.

  private walk(): void {
    this.turn.walkBegins();
    let floor = Number.NEGATIVE_INFINITY;
    while (this.waiting > 0) {
      if (this.turn.isSpent) return;
      const band = this.choice.next(this.nowMs, floor);
      if (band === undefined) break;
      const item = band.next(this.nowMs) as QueueItem;
      if (this.expiry.isDue(item, this.nowMs)) this.evictOverdue(item);
      else if (!this.dispatch(item, band) && !this.setAside(item)) floor = band.priority;
    }
    this.noteGate(this.waiting > 0);
    if (this.waiting > 0) this.reclaim();
  }

  /** What becomes of a request that has nowhere to go. False when its band and those below must wait as well. */
  private setAside(item: QueueItem): boolean {
    if (!this.placement.isServed(item.requestClass)) {
      this.evict(item, 'EvictedNoEndpoints', 'no-endpoints');
      return true;
    }
    // Foreign code may have emptied the pool meanwhile: the walk that it asked for then follows.
    return this.ledger.pool.endpoints.length > 0 && this.choice.holdBack(item.flow as Flow);
  }

  /** Asks running requests to leave for the waiting ones, when eviction is on. */
  private reclaim(): void {
    if (this.evictor === undefined || this.isPoolEmpty) return;
    const victims = this.evictor.victims(this.keeper.table.allWaiting(), this.gate, this.ledger.inFlight, this.nowMs);
    for (const lease of victims) {
      this.evictedInFlight++;
      lease.evict();
      if (this.events.heard.evicted) this.events.emit('evicted', { lease });
    }
  }

  /** False when the request has nowhere to go. */
  private dispatch(item: QueueItem, band: PriorityBand): boolean {
    const endpoint = this.placement.choose(item, this.nowMs);
    if (endpoint === undefined) return false;
    const settle = item.settle as Settle;
    item.settle = undefined;
    band.take(item, this.nowMs);
    this.turn.spend(this.options.maxDispatchesPerTurn);
    const flow = item.flow as Flow;
    this.leaveQueue(item, band);
    settle(this.grant(item, band, this.track(flow), endpoint));
    return true;
  }

  /** Takes the seat and hands out the lease. */
  private grant(item: QueueItem, band: PriorityBand, flow: Flow | undefined, endpoint: Endpoint): Dispatched {
    const lease = new SeatLease(this, item, flow, endpoint, this.nowMs);
    this.ledger.take(lease);
    if (this.evictor !== undefined) lease.isEvictable = this.evictor.track(lease);
    this.gate.passed(band.priority);
    if (this.keeper.shares.isUsed) this.keeper.shares.dispatched(band, this.keeper.table.allWaiting());
    band.drainRate.record(this.nowMs);
    this.outcomes.Dispatched++;
    const queuedMs = this.nowMs - item.enqueuedAtMs;
    if (this.events.heard.dispatched) this.events.emit('dispatched', { item, lease, endpoint: lease.endpoint, queuedMs });
    if (this.evictor === undefined && item.admittedBy?.released === undefined) this.forget(item);
    return { type: 'Dispatched', lease, queuedMs };
  }

  /** True when somebody wants to know when the lease ended. */
  private isTimed(lease: SeatLease): boolean {
    return lease.flow !== undefined || this.evictor !== undefined || this.gate.hearsReleases || this.events.heard.released;
  }

  private settleLease(lease: SeatLease): void {
    const { band, flow } = lease;
    this.released++;
    if (flow !== undefined) {
      band.settled(flow, lease.usage, this.nowMs, lease.tokens);
      flow.trackedInFlight--;
      band.trackedInFlight--;
      this.rest(flow);
    }
    this.ledger.giveBack(lease, this.nowMs);
    this.evictor?.untrack(lease, this.nowMs);
    if (lease.item.request !== undefined) {
      this.giveBackAdmission(lease.item, lease.usage);
      this.forget(lease.item);
    }
    if (this.waiting > 0) this.isWorkWanted = true;
    if (this.events.heard.released) {
      this.events.emit('released', { lease, usage: lease.usage, heldMs: this.nowMs - lease.dispatchedAtMs });
    }
  }

  /** Tells the admission policy that a request it admitted has ended. */
  private giveBackAdmission(item: QueueItem, usage: Usage | undefined): void {
    const policy = item.admittedBy;
    item.admittedBy = undefined;
    if (policy !== undefined) this.desk.released(policy, item.request, item, usage);
  }

  private noteGate(isClosed: boolean): void {
    if (this.isGateClosed === isClosed) return;
    this.isGateClosed = isClosed;
    if (this.events.heard.gate) this.events.emit('gate', { isClosed, saturation: this.gate.saturation });
  }

  // The ways out that are no dispatch.

  private evict(item: QueueItem, type: DropType, reason: DropReason): void {
    const band = item.band as PriorityBand;
    const { settle } = item;
    item.settle = undefined;
    band.discard(item);
    this.leaveQueue(item, band);
    this.rest(item.flow as Flow);
    settle?.(this.drop(item, type, reason));
    this.isWorkWanted = true;
  }

  private drop(item: QueueItem, type: DropType, reason: DropReason, details: DropDetails = noDetails): Drop {
    this.outcomes[type]++;
    const { fairnessId, priority } = item;
    const queuedMs = this.nowMs - item.enqueuedAtMs;
    const { limit, policy, detail, retryAfterMs = this.retryAfterMs(item, reason) } = details;
    const plain: Drop = { type, reason, fairnessId, priority, queuedMs, limit, policy, detail, retryAfterMs };
    const outcome = new DropOutcome(plain, reason === 'ttl-expired' ? this.gate.readingFor(item.band as PriorityBand) : undefined);
    this.giveBackAdmission(item, undefined);
    if (this.events.heard.dropped) this.events.emit('dropped', { item, request: item.request, outcome });
    this.forget(item);
    return outcome;
  }

  /** Gives the payload up, unless an ordering policy may meet the request once more, as a tombstone. */
  private forget(item: QueueItem): void {
    if (item.band === undefined || item.band.settings.ordering.arrivalOrder === true) item.request = undefined;
  }

  /** When the requests now waiting in the band should be gone, if its recent rate holds. */
  private retryAfterMs(item: QueueItem, reason: DropReason): number | undefined {
    if (reason === 'cancelled' || reason === 'shutting-down' || reason === 'no-endpoints') return undefined;
    const { band } = item;
    const rate = band?.drainRate.perSecond(this.nowMs);
    return band === undefined || rate === undefined ? undefined : (Math.max(band.waiting, 1) / rate) * 1000;
  }

  private evictExpired(): void {
    for (let item = this.expiry.due(this.nowMs); item !== undefined; item = this.expiry.due(this.nowMs)) this.evictOverdue(item);
  }

  private evictOverdue(item: QueueItem): void {
    if (this.isPoolEmpty) this.evict(item, 'EvictedNoEndpoints', 'no-endpoints');
    else this.evict(item, 'EvictedTTL', 'ttl-expired');
  }

  private evictCancelled(items: QueueItem[]): void {
    for (const item of items) if (item.isWaiting) this.evict(item, 'EvictedContextCancelled', 'cancelled');
  }

  /** What every way out of the queue shares. */
  private leaveQueue(item: QueueItem, band: PriorityBand): void {
    this.waiting--;
    this.waitingBytes -= item.byteSize;
    if (band.waiting === 0) {
      this.keeper.table.deactivated(band);
      this.keeper.shares.emptied(band);
    }
    this.expiry.remove(item);
    if (item.abortGroup !== undefined) this.cancellation.unwatch(item);
    band.lastUsedMs = this.nowMs;
  }

  /** Remembers the flow for the lease when the fairness policy asks for it. */
  private track(flow: Flow): Flow | undefined {
    if (!flow.band.hearsSettlements) {
      this.rest(flow);
      return undefined;
    }
    flow.trackedInFlight++;
    flow.band.trackedInFlight++;
    return flow;
  }

  private rest(flow: Flow): void {
    if (flow.waiting === 0 && flow.trackedInFlight === 0) this.keeper.flows.becameIdle(flow, this.nowMs);
  }

  // Budgets and regimes.

  budgetOf(item: QueueItem): number {
    return this.isPoolEmpty ? this.options.noEndpointRequestTtlMs : item.ttlMs;
  }

  /** A pool that lost its last endpoint, or got its first, gives everything that waits a fresh budget. O(waiting · log) then. */
  private noticeRegime(): void {
    const isPoolEmpty = this.ledger.pool.endpoints.length === 0;
    if (isPoolEmpty === this.isPoolEmpty) return;
    this.isPoolEmpty = isPoolEmpty;
    this.poolFlippedAtMs = this.nowMs;
    this.restartBudgets();
    if (this.events.heard.regime) this.events.emit('regime', { isPoolEmpty });
  }

  private restartBudgets(): void {
    this.expiry.restart(this.poolFlippedAtMs, this.keeper.allWaiting());
  }

  // Configuration and the end.

  private apply(options: ResolvedOptions): void {
    if (this.state === 'closed') return;
    const before = this.options;
    this.options = options;
    this.recheck.stop();
    this.gate.configure(options);
    this.placement.configure(options);
    this.choice.configure(options);
    this.keeper.configure(options, this.nowMs);
    for (const item of this.keeper.allWaiting()) item.requestClass = this.placement.classOf(item);
    if (before.holBlocking === 'none' || options.holBlocking === 'none') this.refile();
    this.desk.policy = options.admission;
    this.configureEviction(options);
    this.restartBudgets();
    this.isWorkWanted = true;
  }

  /** Whether the classes of a flow queue apart, or which classes there are, may have changed. */
  private refile(): void {
    for (const band of this.keeper.table.allWaiting()) {
      const flowOf = (item: WaitingItem): Flow => {
        const flow = this.flowFor(item as QueueItem, band);
        this.keeper.flows.becameBusy(flow);
        return flow;
      };
      band.refile(flowOf, (flow) => this.rest(flow));
    }
  }

  /** Requests that are in flight when eviction is switched on are left alone. */
  private configureEviction(options: ResolvedOptions): void {
    if (options.eviction === undefined) this.evictor = undefined;
    else if (this.evictor === undefined) this.evictor = new InFlightEvictor(options.eviction, this.events);
    else this.evictor.configure(options.eviction);
  }

  private evictAll(): void {
    for (const item of this.keeper.allWaiting()) this.evict(item, 'EvictedOther', 'shutting-down');
  }

  /** The last request has left a closing controller. */
  private finish(): void {
    this.gate.stop();
    this.detachFromPool();
    this.shutdown.finish();
  }
}
