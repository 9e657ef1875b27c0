/**
 * Takes requests in: each is dropped, dispatched at once, or left to wait.
 *
 *     admission policy ──► band ──► class of endpoints ──► limits ──► do others go first? ──► gate ──► endpoint
 *
 * `decide` resolves band and flow once. It undoes nothing, because it changes nothing: what carries its answer out
 * stands above it. Longer than most files, because every step of one decision stands here, in their order.
 */
import type { Rejection } from '../../admission/admission-policy.js';
import type { GuardedAdmission } from '../../admission/guarded-admission.js';
import { PluginGuard, type Question, question, wrong } from '../../base/faults/plugin-guard.js';
import { Endpoint } from '../../endpoints/seat-pool.js';
import { isTooLate } from '../../gate/constraint.js';
import type { Flow } from '../../tiers/flow.js';
import type { Reason } from '../../tiers/flows-aside.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { TokenEstimate } from '../../tiers/views.js';
import { argumentError, isSignal, isSpan, wrongCall } from '../check-arguments.js';
import type { EventHub } from '../event-hub.js';
import { queuedEvent } from '../events.js';
import type { FlowKey, FlowRequest } from '../flow-request.js';
import type { ResolvedOptions } from '../options.js';
import type { Dispatched, Drop, Outcome } from '../outcome/outcome.js';
import { type Dispatcher, type DispatcherParts, timedOneIn } from './dispatcher.js';
import { overQuota } from './drops.js';
import type { Displacement } from './overflow.js';
import type { Parking } from './parking.js';
import { QueueItem, type Settle } from './queue-item.js';
import { limitDrop, limitHit, makeRoom, neverFits, rejectedType } from './queue-limits.js';
import type { SeatLease } from './seats.js';

export interface IntakeParts extends DispatcherParts {
  readonly admission: GuardedAdmission;
  readonly parking: Parking;
  readonly dispatcher: Dispatcher;
  readonly options: ResolvedOptions;
}

/** How a request waits that may not go now. One record serves every decision, until the next. */
class WaitTerms {
  /** The requests that must leave for this one first; undefined when it finds room. */
  displaces: Displacement | undefined = undefined;
  /** True when the walk must look at the request, because the gate was not asked or is open. */
  wantsWalk = false;
  /** True when other requests go first, so that the gate was not asked. */
  isBehind = false;
  /** What the request waits for, apart from its turn. */
  park: Reason | undefined = undefined;
  /** The flow of the request, if it had to be looked up. */
  flow: Flow | undefined = undefined;
}

let capturedSettle: Settle;
/** One executor for every promise, because a closure per request costs twice as much. */
const captureSettle = (settle: Settle): void => {
  capturedSettle = settle;
};

export class Intake {
  /** Whether the signal of the request that was read last was aborted. */
  private isAborted = false;
  private sequence = 0;
  private readonly terms = new WaitTerms();
  private readonly engine: IntakeParts;
  private readonly events: EventHub;
  private options: ResolvedOptions;
  private readonly guard: PluginGuard;

  constructor(engine: IntakeParts, options: ResolvedOptions, events: EventHub) {
    this.engine = engine;
    this.options = options;
    this.events = events;
    this.guard = new PluginGuard('estimate', { type: 'estimate' }, events);
  }

  configure(options: ResolvedOptions): void {
    this.options = options;
  }

  /** Decides now or lets it wait; `waiting` makes the request then. @throws (rejects) FlowConfigError: a wrong call */
  enter(request: FlowRequest, key: FlowKey, waiting?: () => FlowRequest): Outcome | Promise<Outcome> {
    const { operation } = this.engine;
    if (operation.isBusy) return this.enterLater(waiting?.() ?? request, key);
    operation.begin();
    try {
      const item = this.arrive(request, key);
      if (item === undefined) return Promise.reject(argumentError('enqueue', request, key));
      const outcome = this.outcomeNow(item);
      if (outcome !== undefined) return outcome;
      if (waiting !== undefined) item.restorePayload(waiting());
      const promise = new Promise<Outcome>(captureSettle);
      this.wait(item, capturedSettle);
      return promise;
    } finally {
      operation.leave();
    }
  }

  /** Decides now, or returns undefined and keeps nothing. @throws FlowConfigError for a call that cannot be right */
  tryEnqueue(request: FlowRequest, key: FlowKey): Outcome | undefined {
    const { operation, selector, dispatcher } = this.engine;
    if (operation.isBusy) {
      const wrong = wrongCall('tryEnqueue', request, key);
      if (wrong !== undefined) throw wrong;
      return undefined;
    }
    operation.begin();
    try {
      const item = this.arrive(request, key);
      if (item === undefined) throw argumentError('tryEnqueue', request, key);
      const highest = selector.highestReady;
      if (highest !== undefined && highest.priority >= item.priority) dispatcher.walk();
      const outcome = this.outcomeNow(item, false);
      if (outcome === undefined) this.forget(item);
      return outcome;
    } finally {
      operation.leave();
    }
  }

  /** Takes a request in. `decided` hears the outcome, or undefined; `settle` that of a wait; `failed` of misuse. */
  watch(
    request: FlowRequest,
    key: FlowKey,
    decided: (item: QueueItem, outcome: Outcome | undefined) => void,
    settle: Settle,
    failed: () => void,
  ): void {
    this.engine.operation.perform(() => {
      const item = this.arrive(request, key);
      if (item === undefined) return failed();
      const outcome = this.outcomeNow(item);
      if (outcome === undefined) this.wait(item, settle);
      decided(item, outcome);
    });
  }

  /** For a call from inside another operation. */
  private enterLater(request: FlowRequest, given: FlowKey): Promise<Outcome> {
    const wrong = wrongCall('enqueue', request, given);
    if (wrong !== undefined) return Promise.reject(wrong);
    const { fairnessId, priority } = given;
    const key: FlowKey = { fairnessId, priority };
    return new Promise((settle, reject) => {
      const decided = (_item: QueueItem, outcome: Outcome | undefined): void => {
        if (outcome !== undefined) settle(outcome);
      };
      this.watch(request, key, decided, settle, () => reject(argumentError('enqueue', request, key)));
    });
  }

  /** Settles what is due first: an expired request holds no place, and a newcomer passes none that may go. */
  private arrive(request: FlowRequest, key: FlowKey): QueueItem | undefined {
    const { operation, backlog, drops, placement, parts, selector, dispatcher } = this.engine;
    if (placement.implicitEndpoint === undefined) dispatcher.noteRegime();
    if (backlog.waiting > 0) {
      if (backlog.expiry.mayBeDue(operation.nowMs)) drops.evictExpired();
      if (!selector.isPlain) dispatcher.walk();
    }
    const item = this.read(request, key, operation.nowMs);
    if (item !== undefined && parts.areUsed) for (const part of parts.arrived) part.arrived(item);
    return item;
  }

  /** The outcome of a request that need not wait: a drop, or a dispatch that passes no waiting request. */
  private outcomeNow(item: QueueItem, mayWait = true): Outcome | undefined {
    const { operation, backlog, wakeups } = this.engine;
    const answer = this.decide(item, operation.nowMs);
    const outcome =
      answer instanceof Endpoint ? this.dispatch(item, answer) : answer instanceof WaitTerms ? undefined : answer;
    if (!this.terms.isBehind && outcome !== undefined && backlog.waiting > 0) wakeups.notePoll();
    if (this.events.heard.enqueued && (mayWait || outcome !== undefined)) this.tellEnqueued(item, outcome);
    return outcome;
  }

  /** Dispatches a request that never waited. */
  private dispatch(item: QueueItem, endpoint: Endpoint): Dispatched {
    const { operation, backlog, seats } = this.engine;
    const band = item.band as PriorityBand;
    if (!band.policies.hearsDispatches) return seats.grant(item, band, undefined, endpoint);
    const { flows } = backlog.bands;
    const flow = this.terms.flow ?? flows.flowOf(band, item, operation.nowMs);
    if (band.policies.hearsSettlements) {
      if (flow.isIdle) flows.markBusy(flow);
      band.policies.selector?.dispatched(flow, item, operation.nowMs);
      return seats.grant(item, band, flow, endpoint);
    }
    if (flow.isIdle) flows.touch(flow, operation.nowMs);
    band.policies.selector?.dispatched(flow, item, operation.nowMs);
    return seats.grant(item, band, undefined, endpoint);
  }

  private wait(item: QueueItem, settle: Settle): void {
    const { terms } = this;
    const { operation, dispatcher } = this.engine;
    if (terms.displaces !== undefined) {
      makeRoom(this.engine, item, terms.displaces);
      // Evicting may have idled a flow, and the flow table may then have collected the newcomer's flow.
      terms.flow = undefined;
    }
    if (terms.wantsWalk) operation.want();
    if (!dispatcher.isGateClosed && terms.park === undefined) dispatcher.noteGate(true);
    this.lineUp(item, settle, terms.flow, terms.park);
  }

  /** Lets a request wait once more whose lease has just ended. */
  waitAgain(item: QueueItem, lease: SeatLease, settle: Settle): void {
    const drop = this.recheck(item, lease);
    if (drop !== undefined) return void settle(drop);
    this.engine.operation.want();
    this.lineUp(item, settle);
  }

  private lineUp(item: QueueItem, settle: Settle, known?: Flow, park?: Reason): void {
    const { operation, backlog, parking, parts, seats, wakeups } = this.engine;
    if (backlog.waiting === 0) seats.pool.onDemand?.();
    if (parts.areUsed) for (const part of parts.queued) part.queued();
    wakeups.turnOn(!this.terms.isBehind);
    if (operation.isTurnAwaited) operation.waitsFromNow(item);
    const flow = backlog.add(item, settle, operation.nowMs, known, park);
    if (flow.waitsFor !== undefined && parking.review(flow)) operation.want();
    if (this.events.heard.queued)
      this.events.emit('queued', queuedEvent(item, item.band as PriorityBand, flow, operation.nowMs));
  }

  private tellEnqueued({ fairnessId, priority, sequence }: QueueItem, outcome: Outcome | undefined): void {
    if (sequence % timedOneIn !== 0) return;
    const { operation } = this.engine;
    const durationMs = operation.now() - operation.nowMs;
    this.events.emit('enqueued', { fairnessId, priority, outcome: outcome?.type, durationMs });
  }

  /**
   * The queue item, with its band if that exists; undefined for a wrong call. Counts the arrival. Reads each property
   * once, because one of foreign code may change, or throw, at every reading.
   */
  private read(request: FlowRequest, key: FlowKey, nowMs: number): QueueItem | undefined {
    try {
      const { byteSize, signal, ttlMs, tokens = 0, sloTtftMs, receivedAtMs, maxWaitMs } = request;
      const { fairnessId, priority = 0 } = key;
      if (!isRight(fairnessId, priority, byteSize, signal, ttlMs, tokens, sloTtftMs, receivedAtMs, maxWaitMs))
        return undefined;
      this.isAborted = signal?.aborted === true;
      const { bands } = this.engine.backlog;
      const band = bands.arrived(priority, nowMs);
      const ownTtlMs = ttlMs ?? (band === undefined ? bands.settingsOf(priority) : band.settings).requestTtlMs;
      let longestWaitMs = ownTtlMs === 0 ? Infinity : ownTtlMs;
      if (maxWaitMs !== undefined && maxWaitMs < longestWaitMs) longestWaitMs = maxWaitMs;
      const estimate = this.options.estimate && this.guard.ask(this.options, hostEstimate, request);
      const item = new QueueItem(
        request,
        band,
        fairnessId,
        priority,
        byteSize,
        estimate === undefined ? tokens : heldTokens(estimate),
        this.sequence++,
        nowMs,
        longestWaitMs,
      );
      if (estimate !== undefined) item.estimate = estimate;
      if (receivedAtMs !== undefined || sloTtftMs !== undefined) item.noteTimes(receivedAtMs, sloTtftMs);
      return item;
    } catch {
      return undefined;
    }
  }

  /** Undoes the arrival of a request that was only tried, and would have had to wait. */
  private forget(item: QueueItem): void {
    const { operation, admission, backlog } = this.engine;
    backlog.bands.withdrawn(item.priority);
    admission.dropped(item, operation.nowMs);
  }

  /** Returns a drop if the request may not come in, an endpoint if it may go at once, and otherwise how it waits. */
  private decide(item: QueueItem, nowMs: number): Drop | Endpoint | WaitTerms {
    const { terms } = this;
    const { backlog, placement, gate, parts } = this.engine;
    terms.displaces = undefined;
    terms.wantsWalk = false;
    terms.isBehind = false;
    terms.park = undefined;
    terms.flow = undefined;
    const rejection = this.precheck(item, nowMs);
    if (rejection !== undefined) return rejection;
    const band = item.band as PriorityBand;
    if (this.options.mode === 'admission') return placement.choose(item, nowMs) ?? this.noEndpoint(item, nowMs);
    const isOver = !this.fits(item, band);
    if (isOver && neverFits(this.engine, item, band)) return limitDrop(this.engine, item, band, terms) ?? terms;
    const isParked = parts.obstacle.length > 0 && this.isParked(item, band, nowMs);
    terms.isBehind = backlog.waiting > 0 && this.othersGoFirst(item, band, nowMs);
    if (!terms.isBehind && !isParked && gate.admits(band, nowMs)) {
      // A request that goes at once needs no place in the queue.
      const endpoint = placement.direct ?? placement.choose(item, nowMs);
      if (endpoint !== undefined) return endpoint;
      // The gate is open and no endpoint can take the request: the walk holds it back or drops it.
      terms.wantsWalk = true;
    }
    if (gate.constraints.areAny) {
      const drop = this.dropIfTooLate(item, nowMs);
      if (drop !== undefined) return drop;
    }
    return (isOver ? limitDrop(this.engine, item, band, terms) : undefined) ?? terms;
  }

  /** Returns a drop if the request cannot have room before its time is up. */
  private dropIfTooLate(item: QueueItem, nowMs: number): Drop | undefined {
    const wait = this.engine.placement.waitOf(item, nowMs);
    if (wait === undefined || !isTooLate(wait, nowMs + item.ttlMs)) return undefined;
    return this.engine.drops.drop(item, 'RejectedCapacity', ...overQuota(wait, nowMs));
  }

  /** Returns a drop if the request may not come in, whatever waits. Otherwise sets its band. */
  private precheck(item: QueueItem, nowMs: number): Drop | undefined {
    const { admission, backlog, drops, placement, shutdown } = this.engine;
    if (shutdown.state !== 'open') return drops.drop(item, 'RejectedOther', 'shutting-down');
    if (this.isAborted) return drops.drop(item, 'RejectedOther', 'cancelled');
    if (admission.policy !== undefined) {
      const rejection = admission.rejection(item.request, item, nowMs, backlog.waiting);
      if (rejection !== undefined) return this.rejectedBy(rejection, item);
      item.admittedBy = admission.admittedBy;
    }
    if (item.band === undefined) item.band = backlog.bands.bandOf(item.priority, nowMs);
    if (item.band === undefined) return drops.drop(item, rejectedType(this.engine), 'max-bands');
    if (!placement.tellsClasses) return undefined;
    placement.classify(item);
    return placement.isServed(item.requestClass) ? undefined : drops.drop(item, 'RejectedNoEndpoints', 'no-endpoints');
  }

  /** Returns the drop of a victim that may not wait again; else it gets band and class anew. `lease`: what it had. */
  private recheck(item: QueueItem, lease: SeatLease): Drop | undefined {
    const { operation, backlog, drops, placement, shutdown } = this.engine;
    if (shutdown.state !== 'open') return drops.drop(item, 'RejectedOther', 'shutting-down');
    if (isAborted(item.request)) return drops.drop(item, 'RejectedOther', 'cancelled');
    const isTwiceEvicted = lease.item.isRequeued && !lease.isPutOff;
    if (isTwiceEvicted || lease.usage.completionTokens > 0) return drops.drop(item, 'EvictedOther', 'evicted');
    item.band = backlog.bands.bandOf(item.priority, operation.nowMs);
    placement.classify(item);
    return item.band === undefined ? drops.drop(item, rejectedType(this.engine), 'max-bands') : undefined;
  }

  private rejectedBy({ reason, cause, retryAfterMs, policy }: Rejection, item: QueueItem): Drop {
    const details = { policy, detail: reason, retryAfterMs };
    const why = cause === 'overloaded' ? 'overloaded' : cause === 'budget' ? 'over-budget' : 'refused';
    return this.engine.drops.drop(item, 'RejectedCapacity', why, details);
  }

  /** Mode `admission`: an admitted request that no endpoint can take does not wait. */
  private noEndpoint(item: QueueItem, nowMs: number): Drop {
    const { backlog, drops, placement } = this.engine;
    if (backlog.isPoolEmpty && !placement.isOverloaded(nowMs))
      return drops.drop(item, 'RejectedNoEndpoints', 'no-endpoints');
    return drops.drop(item, 'RejectedCapacity', 'overloaded');
  }

  /** True within all limits. Resolves the flow if the flow may be at its own limit. */
  private fits(item: QueueItem, band: PriorityBand): boolean {
    const { waiting, waitingBytes } = this.engine.backlog;
    const { limits, flows } = this.options;
    const { byteSize } = item;
    if (waiting >= limits.maxRequests || waitingBytes + byteSize > limits.maxBytes) return false;
    const { limits: own, flowLimits } = band.settings;
    if (band.waiting >= own.maxRequests || band.waitingBytes + byteSize > own.maxBytes) return false;
    // A flow holds no more than its band. While the band is below the limit of a flow, the flow need not be looked up.
    const isRoomy = band.waiting < flowLimits.maxRequests && band.waitingBytes + byteSize <= flowLimits.maxBytes;
    return (isRoomy && flows.size === 0) || limitHit(this.engine, item, band, this.terms) === undefined;
  }

  /** True when a request that waits already goes before this one, so that the gate need not be asked. */
  private othersGoFirst(item: QueueItem, band: PriorityBand, nowMs: number): boolean {
    const { terms } = this;
    const { backlog, selector, gate, wakeups } = this.engine;
    // While the allowance of this turn is spent, held flows have not retried yet: any band may go first.
    const highest = wakeups.isPaused ? backlog.bands.highestWaiting : selector.highestReady;
    if (highest !== undefined && highest.priority >= item.priority) {
      // A gate that is not polled opens by a change that starts a walk itself: here it is still closed (bench: burst).
      terms.wantsWalk = !selector.isPlain || gate.recheckMs < Infinity || this.mayGoAhead(item, highest);
      return true;
    }
    if (band.aside.waiting.held === 0) return false;
    terms.flow ??= backlog.bands.flows.flowOf(band, item, nowMs);
    terms.wantsWalk = terms.flow.isHeld;
    return terms.wantsWalk;
  }

  /** True when its flow is parked, or will be because it is at its cap. */
  private isParked(item: QueueItem, band: PriorityBand, nowMs: number): boolean {
    const { terms } = this;
    const { backlog, parts } = this.engine;
    terms.flow ??= backlog.bands.flows.flowOf(band, item, nowMs);
    const { isParked, waitsFor, waiting } = terms.flow;
    terms.park = isParked ? waitsFor : waiting === 0 ? parts.obstacleTo(item, band) : undefined;
    return terms.park !== undefined;
  }

  /** True when the first of its band may wait for room alone: this one, with room elsewhere, may go first. */
  private mayGoAhead(item: QueueItem, highest: PriorityBand): boolean {
    const { placement, gate } = this.engine;
    const mayPass = placement.tellsClasses || gate.constraints.areAny;
    return mayPass && highest.priority === item.priority && gate.isOpenFor(highest);
  }
}

/** It is one function of plain values, because every request passes it. */
function isRight(
  fairnessId: unknown,
  priority: unknown,
  byteSize: number,
  signal: unknown,
  ttlMs: unknown,
  tokens: number,
  sloTtftMs: unknown,
  receivedAtMs: unknown,
  maxWaitMs: unknown,
): boolean {
  return (
    Number.isSafeInteger(byteSize) &&
    byteSize >= 0 &&
    typeof fairnessId === 'string' &&
    fairnessId !== '' &&
    Number.isSafeInteger(priority) &&
    (signal === undefined || isSignal(signal)) &&
    (ttlMs === undefined || isSpan(ttlMs)) &&
    Number.isSafeInteger(tokens) &&
    tokens >= 0 &&
    (sloTtftMs === undefined || isSpan(sloTtftMs)) &&
    (receivedAtMs === undefined || Number.isFinite(receivedAtMs)) &&
    (maxWaitMs === undefined || isSpan(maxWaitMs))
  );
}

/** A signal that cannot be read is not aborted. */
function isAborted(request: FlowRequest | undefined): boolean {
  try {
    return request?.signal?.aborted === true;
  } catch {
    return false;
  }
}

/** Tokens that a request can take. */
const mostTokens = 2 ** 50;

/** What a host's option `estimate` may say of a request: copied, because foreign values may change. */
const hostEstimate: Question<'estimate', TokenEstimate | undefined> = /* @__PURE__ */ question(
  'estimate',
  'numbers of tokens from 0 up, or undefined',
  (answer) => {
    if (answer === undefined) return undefined;
    const { inputTokens, cachedTokens = 0, outputTokens } = answer as TokenEstimate;
    const areRight = [inputTokens, cachedTokens, outputTokens ?? 0].every(
      (tokens) => tokens >= 0 && tokens <= mostTokens,
    );
    return areRight ? { inputTokens, cachedTokens, outputTokens } : wrong;
  },
);

/** What a request holds while it runs, an integer. */
function heldTokens({ inputTokens, cachedTokens = 0, outputTokens = 0 }: TokenEstimate): number {
  return Math.ceil(Math.max(inputTokens - cachedTokens, 0) + outputTokens);
}
