/**
 * Decides what becomes of one request that comes in: dropped, dispatched at once, or left to wait.
 *
 *     admission policy ──► band ──► class of endpoints ──► limits ──► do others go first? ──► gate ──► endpoint
 *
 * It resolves band and flow once. It undoes nothing, because it changes nothing: its caller carries out the answer.
 *
 * Longer than most files, because every step of one decision stands here, in their order.
 */
import type { Refusal } from '../../admission/admission-policy.js';
import type { GuardedAdmission } from '../../admission/guarded-admission.js';
import type { Endpoint } from '../../endpoints/endpoint-pool.js';
import type { Gate } from '../../gate/gate.js';
import type { BandSelector } from '../../tiers/1-priority/band-selector.js';
import type { Flow } from '../../tiers/flow.js';
import type { Park } from '../../tiers/parked-flows.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import { isSignal, isSpan } from '../check-arguments.js';
import type { FlowKey, FlowRequest } from '../flow-request.js';
import type { ResolvedOptions } from '../options.js';
import type { LimitHit } from '../outcome/limit-hit.js';
import type { Drop, DropType } from '../outcome/outcome.js';
import type { Backlog } from './backlog.js';
import { exceededLimit, isUnlimited } from './capacity-limits.js';
import { type Drops, overQuota } from './drops.js';
import type { InFlightCaps } from './in-flight-caps.js';
import { type Displacement, Overflow } from './overflow.js';
import type { Parking } from './parking.js';
import type { Placement } from './placement.js';
import { QueueItem } from './queue-item.js';
import type { SeatLease } from './seats.js';
import type { Shutdown } from './shutdown.js';

export interface IntakeParts {
  readonly backlog: Backlog;
  readonly gate: Gate;
  readonly placement: Placement;
  readonly selector: BandSelector;
  readonly admission: GuardedAdmission;
  readonly drops: Drops;
  readonly parking: Parking;
  readonly shutdown: Shutdown;
}

export class Intake {
  /** After the answer to wait: the requests that must leave for this one first; undefined when it finds room. */
  displaces: Displacement | undefined = undefined;
  /**
   * After the answer to wait: true when the walk must look at the request, because the gate was not asked or is open.
   */
  wantsWalk = false;
  /** After an answer: true when other requests go first, so that the gate was not asked. */
  isBehind = false;
  /** After the answer to wait: what the request waits for, apart from its turn. */
  park: Park | undefined = undefined;
  /** After an answer: the flow of the request, if it had to be looked up. */
  flow: Flow | undefined = undefined;
  /** Whether the signal of the request that was read last was aborted. */
  private isAborted = false;
  /** Arrival numbers. */
  private sequence = 0;
  readonly overflow: Overflow;
  private readonly parts: IntakeParts;
  private options: ResolvedOptions;

  constructor(parts: IntakeParts, options: ResolvedOptions) {
    this.parts = parts;
    this.options = options;
    this.overflow = new Overflow(parts.backlog, options);
  }

  configure(options: ResolvedOptions): void {
    this.options = options;
    this.overflow.configure(options);
  }

  /**
   * Returns the queue item of the request, with its band if that exists; undefined for a call that cannot be right.
   * Counts the arrival. Reads and checks each property once, because a property of foreign code may change, or throw,
   * at every reading.
   */
  read(request: FlowRequest, key: FlowKey, nowMs: number): QueueItem | undefined {
    try {
      const { byteSize, signal, ttlMs, tokens = 0, sloTtftMs, receivedAtMs, maxWaitMs } = request;
      const { fairnessId, priority = 0 } = key;
      if (!isRight(fairnessId, priority, byteSize, signal, ttlMs, tokens, sloTtftMs, receivedAtMs, maxWaitMs))
        return undefined;
      this.isAborted = signal?.aborted === true;
      const { bands } = this.parts.backlog;
      const band = bands.arrived(priority, nowMs);
      const ownTtlMs = ttlMs ?? (band === undefined ? bands.settingsOf(priority) : band.settings).requestTtlMs;
      let longestWaitMs = ownTtlMs === 0 ? Number.POSITIVE_INFINITY : ownTtlMs;
      if (maxWaitMs !== undefined && maxWaitMs < longestWaitMs) longestWaitMs = maxWaitMs;
      const item = new QueueItem(
        request,
        band,
        fairnessId,
        priority,
        byteSize,
        tokens,
        this.sequence++,
        nowMs,
        longestWaitMs,
      );
      if (receivedAtMs !== undefined || sloTtftMs !== undefined) item.noteTimes(receivedAtMs, sloTtftMs);
      return item;
    } catch {
      return undefined;
    }
  }

  /** Undoes the arrival of a request that was only tried, and would have had to wait. */
  forget(item: QueueItem, nowMs: number): void {
    this.parts.backlog.bands.withdrawn(item.priority);
    if (item.admittedBy !== undefined) this.parts.admission.ended(item, undefined, nowMs);
  }

  /**
   * Returns a drop if the request may not come in, an endpoint if it may go at once, and undefined if it has to wait.
   * `isPaused` while the budget of this turn is spent: every band with waiting requests goes first then.
   */
  decide(item: QueueItem, nowMs: number, isPaused: boolean): Drop | Endpoint | undefined {
    const { backlog, placement, gate, parking } = this.parts;
    this.displaces = undefined;
    this.wantsWalk = false;
    this.isBehind = false;
    this.park = undefined;
    this.flow = undefined;
    const rejection = this.precheck(item, nowMs);
    if (rejection !== undefined) return rejection;
    const band = item.band as PriorityBand;
    if (this.options.mode === 'admission') return placement.choose(item, nowMs) ?? this.noEndpoint(item, nowMs);
    const isOver = !this.fits(item, band, nowMs);
    if (isOver && this.neverFits(item, band)) return this.overLimit(item, band, nowMs);
    const isParked = parking.caps !== undefined && this.isParked(item, band, parking.caps, nowMs);
    this.isBehind = backlog.waiting > 0 && this.othersGoFirst(item, band, isPaused, nowMs);
    if (!this.isBehind && !isParked && gate.admits(band, nowMs)) {
      // A request that goes at once needs no place in the queue.
      const endpoint = placement.direct ?? placement.choose(item, nowMs);
      if (endpoint !== undefined) return endpoint;
      // The gate is open and no endpoint can take the request: the walk holds it back or drops it.
      this.wantsWalk = true;
    }
    if (gate.judgesRequests) {
      const drop = this.dropIfTooLate(item, nowMs);
      if (drop !== undefined) return drop;
    }
    return isOver ? this.overLimit(item, band, nowMs) : undefined;
  }

  /** Returns a drop if the request cannot have room before its time is up. */
  private dropIfTooLate(item: QueueItem, nowMs: number): Drop | undefined {
    const wait = this.parts.placement.waitOf(item, nowMs);
    if (wait === undefined || wait.notBeforeMs <= nowMs + item.ttlMs) return undefined;
    return this.parts.drops.drop(item, 'RejectedCapacity', 'over-quota', nowMs, overQuota(wait, nowMs));
  }

  /** Returns a drop if the request may not come in, whatever waits. Otherwise sets its band. */
  private precheck(item: QueueItem, nowMs: number): Drop | undefined {
    const { admission, backlog, drops, placement, shutdown } = this.parts;
    if (shutdown.state !== 'open') return drops.drop(item, 'RejectedOther', 'shutting-down', nowMs);
    if (this.isAborted) return drops.drop(item, 'RejectedOther', 'cancelled', nowMs);
    if (admission.policy !== undefined) {
      const refusal = admission.refusal(item.request, item, nowMs, backlog.waiting);
      if (refusal !== undefined) return this.rejectedBy(refusal, item, nowMs);
      item.admittedBy = admission.admittedBy;
    }
    if (item.band === undefined) item.band = backlog.bands.bandOf(item.priority, nowMs);
    if (item.band === undefined) return drops.drop(item, this.capacityType, 'max-bands', nowMs);
    if (!placement.tellsClasses) return undefined;
    placement.classify(item);
    return placement.isServed(item.requestClass)
      ? undefined
      : drops.drop(item, 'RejectedNoEndpoints', 'no-endpoints', nowMs);
  }

  /**
   * Returns the drop of a victim that may not wait again. Otherwise sets its band and its class, because bands and
   * filters may have changed meanwhile. `lease`: the lease that was taken from it.
   */
  recheck(item: QueueItem, lease: SeatLease, nowMs: number): Drop | undefined {
    const { backlog, drops, placement, shutdown } = this.parts;
    if (shutdown.state !== 'open') return drops.drop(item, 'RejectedOther', 'shutting-down', nowMs);
    if (isAborted(item.request)) return drops.drop(item, 'RejectedOther', 'cancelled', nowMs);
    const isTwiceEvicted = lease.item.isRequeued && !lease.isPutOff;
    if (isTwiceEvicted || lease.usage.completionTokens > 0) return drops.drop(item, 'EvictedOther', 'evicted', nowMs);
    item.band = backlog.bands.bandOf(item.priority, nowMs);
    placement.classify(item);
    return item.band === undefined ? drops.drop(item, this.capacityType, 'max-bands', nowMs) : undefined;
  }

  /** The flow may have been collected since it was looked up. */
  forgetFlow(): void {
    this.flow = undefined;
  }

  private rejectedBy({ reason, cause, retryAfterMs, policy }: Refusal, item: QueueItem, nowMs: number): Drop {
    const details = { policy, detail: reason, retryAfterMs };
    return this.parts.drops.drop(
      item,
      'RejectedCapacity',
      cause === 'overloaded' ? 'overloaded' : 'refused',
      nowMs,
      details,
    );
  }

  /** Mode `admission`: an admitted request that no endpoint can take does not wait. */
  private noEndpoint(item: QueueItem, nowMs: number): Drop {
    const { backlog, drops, placement } = this.parts;
    if (backlog.isPoolEmpty && !placement.isOverloaded(nowMs))
      return drops.drop(item, 'RejectedNoEndpoints', 'no-endpoints', nowMs);
    return drops.drop(item, 'RejectedCapacity', 'overloaded', nowMs);
  }

  /** True within all limits. Resolves the flow if the flow may be at its own limit. */
  private fits(item: QueueItem, band: PriorityBand, nowMs: number): boolean {
    const { waiting, waitingBytes } = this.parts.backlog;
    const { limits, flows } = this.options;
    const { byteSize } = item;
    if (waiting >= limits.maxRequests || waitingBytes + byteSize > limits.maxBytes) return false;
    const { limits: own, flowLimits } = band.settings;
    if (band.waiting >= own.maxRequests || band.waitingBytes + byteSize > own.maxBytes) return false;
    // A flow holds no more than its band. While the band is below the limit of a flow, the flow need not be looked up.
    const isRoomy = band.waiting < flowLimits.maxRequests && band.waitingBytes + byteSize <= flowLimits.maxBytes;
    return (isRoomy && flows.size === 0) || this.limitHitBy(item, band, nowMs) === undefined;
  }

  /** True when a request exceeds a limit by itself, so that it is rejected even where it could go at once. */
  private neverFits({ byteSize, fairnessId }: QueueItem, { settings }: PriorityBand): boolean {
    const { limits, flows } = this.options;
    const all = [limits, settings.limits, flows.get(fairnessId)?.limits ?? settings.flowLimits];
    return all.some(({ maxRequests, maxBytes }) => maxRequests < 1 || byteSize > maxBytes);
  }

  /** Returns a drop if the request exceeds a limit, unless others leave for it. */
  private overLimit(item: QueueItem, band: PriorityBand, nowMs: number): Drop | undefined {
    const limit = this.limitHitBy(item, band, nowMs);
    if (limit === undefined) return undefined;
    if (this.options.overflow !== 'reject' && this.flowLimitHitBy(item, band, nowMs) === undefined) {
      this.flow ??= this.parts.backlog.flowOf(item, band, nowMs);
      this.displaces = this.overflow.displacement({ byteSize: item.byteSize, band, flow: this.flow }, limit);
      if (this.displaces !== undefined) return undefined;
    }
    return this.parts.drops.drop(item, this.capacityType, `${limit.scope}-max-${limit.resource}`, nowMs, { limit });
  }

  private limitHitBy(item: QueueItem, band: PriorityBand, nowMs: number): LimitHit | undefined {
    return (
      exceededLimit('global', this.parts.backlog, this.options.limits, item.byteSize) ??
      exceededLimit('band', band, band.settings.limits, item.byteSize) ??
      this.flowLimitHitBy(item, band, nowMs)
    );
  }

  private flowLimitHitBy(item: QueueItem, band: PriorityBand, nowMs: number): LimitHit | undefined {
    const flowLimits = this.options.flows.get(item.fairnessId)?.limits ?? band.settings.flowLimits;
    if (isUnlimited(flowLimits)) return undefined;
    this.flow ??= this.parts.backlog.flowOf(item, band, nowMs);
    return exceededLimit('flow', this.flow, flowLimits, item.byteSize);
  }

  /** True when a request that waits already goes before this one, so that the gate need not be asked. */
  private othersGoFirst(item: QueueItem, band: PriorityBand, isPaused: boolean, nowMs: number): boolean {
    const { backlog, selector, gate } = this.parts;
    // While the budget of this turn is spent, held flows have not retried yet: any band may go first.
    const highest = isPaused ? backlog.bands.highestWaiting : selector.highestReady;
    if (highest !== undefined && highest.priority >= item.priority) {
      // A gate that is not polled opens by a change that starts a walk itself: here it is still closed (bench: burst).
      this.wantsWalk = !selector.isPlain || gate.recheckMs < Number.POSITIVE_INFINITY || this.mayGoAhead(item, highest);
      return true;
    }
    if (band.held.waiting === 0) return false;
    this.flow ??= backlog.flowOf(item, band, nowMs);
    this.wantsWalk = this.flow.heldIn !== undefined;
    return this.wantsWalk;
  }

  /** True when its flow is parked, or will be because it is at its cap. */
  private isParked(item: QueueItem, band: PriorityBand, caps: InFlightCaps, nowMs: number): boolean {
    this.flow ??= this.parts.backlog.flowOf(item, band, nowMs);
    const { parkedFor, waiting } = this.flow;
    this.park = parkedFor ?? (waiting === 0 ? caps.obstacle(item, band) : undefined);
    return this.park !== undefined;
  }

  /**
   * True when the first request of its band may wait for room alone, so that this one, with room elsewhere, may take
   * its place.
   */
  private mayGoAhead(item: QueueItem, highest: PriorityBand): boolean {
    const { placement, gate } = this.parts;
    const mayPass = placement.tellsClasses || gate.judgesRequests;
    return mayPass && highest.priority === item.priority && gate.isOpenFor(highest);
  }

  private get capacityType(): DropType {
    return this.parts.backlog.isPoolEmpty ? 'RejectedNoEndpoints' : 'RejectedCapacity';
  }
}

/**
 * False for a call of `enqueue` that cannot be right; `argumentError` says what is wrong. For callers that do not take
 * the request in yet.
 */
export function isRightCall(request: FlowRequest, key: FlowKey): boolean {
  try {
    const { byteSize, signal, ttlMs, tokens = 0, sloTtftMs, receivedAtMs, maxWaitMs } = request;
    const { fairnessId, priority = 0 } = key;
    return isRight(fairnessId, priority, byteSize, signal, ttlMs, tokens, sloTtftMs, receivedAtMs, maxWaitMs);
  } catch {
    return false;
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
