/**
 * The walk: priority band → gate → flow → request → endpoint → lease.
 *
 * *Commitment point*: the seat is taken in the same synchronous step that decides, so that two requests never pass one
 * free slot.
 * *Work conservation and head-of-line blocking*: between operations, nothing waits in a band that the gate is open for,
 * unless the allowance of this turn is spent. A request that no endpoint can take holds back its band, its flow or its
 * class, as `holBlocking` says.
 */
import { OneTimer } from '../../base/one-timer.js';
import { isTooLate } from '../../gate/constraint.js';
import type { Gate } from '../../gate/gate.js';
import type { BandSelector } from '../../tiers/1-priority/band-selector.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { EventHub } from '../event-hub.js';
import type { ResolvedOptions } from '../options.js';
import type { Backlog } from './backlog.js';
import { type Drops, overQuota } from './drops.js';
import type { Operation } from './operation.js';
import type { Parts } from './parts.js';
import type { Placement } from './placement.js';
import type { QueueItem } from './queue-item.js';
import type { Seats } from './seats.js';
import type { Shutdown } from './shutdown.js';

/** Times one operation in sixteen: timing all costs half a dispatch. */
export const timedOneIn = 16;
/** Later deadlines have not come since a shared reading, unless the host kept its event loop busy for so long, ms. */
const soonMs = 1000;

export interface WakeupsParts {
  readonly operation: Operation;
  readonly backlog: Backlog;
  readonly gate: Gate;
  readonly placement: Placement;
  readonly parts: Parts;
  readonly shutdown: Shutdown;
}

export interface DispatcherParts extends WakeupsParts {
  readonly selector: BandSelector;
  readonly drops: Drops;
  readonly seats: Seats;
  readonly wakeups: Wakeups;
}

export class Dispatcher {
  /** True when the last walk left requests waiting before a closed gate. */
  isGateClosed = false;
  private walks = 0;
  private readonly engine: DispatcherParts;
  private readonly events: EventHub;

  constructor(engine: DispatcherParts, events: EventHub) {
    this.engine = engine;
    this.events = events;
  }

  work(): void {
    const { operation, placement } = this.engine;
    if (placement.implicitEndpoint === undefined) this.noteRegime();
    if (!this.events.heard.walked || this.walks++ % timedOneIn !== 0) return void this.walk();
    const startedAtMs = operation.now();
    this.walk();
    this.events.emit('walked', { durationMs: operation.now() - startedAtMs });
  }

  /** Notes whether an endpoint is available. */
  noteRegime(): void {
    const { operation, backlog, gate } = this.engine;
    const isPoolEmpty = gate.isPoolEmpty(operation.nowMs);
    if (isPoolEmpty === backlog.isPoolEmpty) return;
    backlog.enterRegime(isPoolEmpty, operation.nowMs);
    operation.want();
    if (this.events.heard.regime) this.events.emit('regime', { isPoolEmpty });
  }

  noteGate(isClosed: boolean): void {
    this.isGateClosed = isClosed;
    if (this.events.heard.gate) this.events.emit('gate', { isClosed, saturation: this.engine.gate.saturation });
  }

  walk(): void {
    const { operation, backlog, drops, parts, gate, selector, wakeups } = this.engine;
    const { bands } = backlog;
    wakeups.walkBegins();
    // What became overdue since the reading that this operation shares must not go (bench: steady).
    if (operation.isBehind && backlog.expiry.mayBeDue(operation.nowMs + soonMs)) operation.read();
    const { nowMs } = operation;
    if (gate.constraints.areAny) gate.constraints.forgetRoom();
    if (parts.areUsed) for (const part of parts.walkBegins) part.walkBegins(nowMs);
    let floor = -Infinity;
    while (backlog.waiting > 0) {
      if (wakeups.isPaused) return;
      // Tier 1 and the gate: a band above `floor` that may dispatch now.
      let band = bands.highestWaiting;
      if (!selector.isPlain) band = selector.next(nowMs, floor);
      else if (band === undefined || band.priority <= floor || !gate.admits(band, nowMs)) band = undefined;
      if (band === undefined) break;
      const item = band.next(nowMs) as QueueItem;
      if (backlog.expiry.isDue(item, nowMs)) drops.evictOverdue(item);
      else if (band.policies.ordering.dropsInfeasible && band.policies.ordering.isInfeasible(item, nowMs))
        drops.evict(item, 'EvictedOther', 'infeasible');
      else if (!(parts.areUsed && this.parks(item, band)) && !this.dispatch(item, band) && !this.holdBackOrDrop(item)) {
        floor = band.priority;
        if (band.policies.ordering.dropsInfeasible) wakeups.mayGiveUp();
      }
    }
    const isClosed = backlog.waiting > bands.parked;
    if (this.isGateClosed !== isClosed) this.noteGate(isClosed);
    if (isClosed && parts.areUsed) for (const part of parts.gateClosed) part.gateClosed(nowMs);
  }

  /** False when no endpoint can take the request. */
  private dispatch(item: QueueItem, band: PriorityBand): boolean {
    const { operation, backlog, seats, parts, placement, wakeups } = this.engine;
    const endpoint = placement.direct ?? placement.choose(item, operation.nowMs);
    if (endpoint === undefined) return false;
    if (parts.areUsed) for (const part of parts.revokes) if (part.revokes(item)) return true;
    wakeups.spend();
    const settle = backlog.take(item, band, operation.nowMs);
    settle(seats.grant(item, band, band.policies.hearsSettlements ? item.flow : undefined, endpoint));
    return true;
  }

  /** True when a part has parked the flow of the request. */
  private parks(item: QueueItem, band: PriorityBand): boolean {
    const reason = this.engine.parts.obstacleTo(item, band);
    if (reason) this.engine.backlog.park(item.flow as Flow, reason);
    return reason !== undefined;
  }

  /** Decides about a request that no endpoint can take. False when its band and those below must wait as well. */
  private holdBackOrDrop(item: QueueItem): boolean {
    const { operation, backlog, drops, placement, seats, selector } = this.engine;
    if (!placement.isServed(item.requestClass)) {
      drops.evict(item, 'EvictedNoEndpoints', 'no-endpoints');
      return true;
    }
    const wait = placement.waitOf(item, operation.nowMs);
    if (wait !== undefined && isTooLate(wait, backlog.expiry.deadlineOf(item))) {
      drops.evict(item, 'EvictedOther', ...overQuota(wait, operation.nowMs));
      return true;
    }
    // Foreign code may have emptied the pool in the meantime; the walk that it asked for comes next.
    return seats.pool.endpoints.length > 0 && selector.holdBack(item.flow as Flow);
  }
}

/**
 * When the walk runs although nobody calls: deadlines, a closed gate, the turn after one that spent its allowance.
 * Invariant: while nothing waits no timer is set, except until the end of the turn in which something waited.
 */
export class Wakeups {
  /** True from the moment that a request waits, or the controller closes, until nothing is left to wake up for. */
  isOn = false;
  /** True when this turn has dispatched as many waiting requests as it may; false again in the next turn. */
  isPaused = false;
  /** Looks at a closed gate again when nothing announces a change. */
  readonly poller: OneTimer;
  private dispatchedInTurn = 0;
  private mostInTurn: number;
  private recheckIntervalMs: number;
  /** True when the poller may need another time, because the gate or the endpoints were read. */
  private isPollDue = false;
  /** True when the walk ran since the poller was last set: who only reads may find open what nobody has walked yet. */
  private hasWalked = false;
  /** True when the first request of a band holds it back, and its ordering policy may give it up as time passes. */
  private isGivingUp = false;
  private readonly engine: WakeupsParts;

  constructor(engine: WakeupsParts, { clock, gate, maxDispatchesPerTurn }: ResolvedOptions) {
    this.engine = engine;
    this.mostInTurn = maxDispatchesPerTurn;
    this.recheckIntervalMs = gate.recheckIntervalMs;
    this.poller = new OneTimer(clock, () => {
      if (!engine.operation.tellsTurns) this.renewAllowance();
      engine.operation.wake();
    });
  }

  configure({ gate, maxDispatchesPerTurn }: ResolvedOptions): void {
    this.mostInTurn = maxDispatchesPerTurn;
    this.recheckIntervalMs = gate.recheckIntervalMs;
    this.poller.stop();
  }

  /** Something waits from now on, before a gate that was read or behind others; or the controller closes. */
  turnOn(isGateRead: boolean): void {
    this.isOn = true;
    if (isGateRead) this.isPollDue = true;
  }

  /** The gate or the endpoints were read. */
  notePoll(): void {
    this.isPollDue = true;
  }

  walkBegins(): void {
    this.isPollDue = true;
    this.hasWalked = true;
    this.isGivingUp = false;
    if (!this.engine.operation.tellsTurns && !this.isPaused) this.dispatchedInTurn = 0;
  }

  mayGiveUp(): void {
    this.isGivingUp = true;
  }

  /** Counts a dispatch of a waiting request. When the turn has used its allowance, the others wait for the next. */
  spend(): void {
    this.dispatchedInTurn++;
    if (this.dispatchedInTurn >= this.mostInTurn) this.isPaused = true;
    const { operation } = this.engine;
    if (!operation.isTurnAwaited) operation.awaitTurn();
  }

  turnBegins(): void {
    const wasPaused = this.isPaused;
    this.renewAllowance();
    if (wasPaused) this.engine.operation.wake();
    else if (this.isOn && this.engine.backlog.waiting === 0) this.turnOff();
  }

  end(): void {
    const { operation, backlog, gate, placement, parts, shutdown } = this.engine;
    const { nowMs } = operation;
    const { waiting, isPoolEmpty, bands, expiry } = backlog;
    if (waiting === 0) {
      if (!operation.tellsTurns) this.renewAllowance();
      // Requests that wait later in this turn find the timers set (bench: wake-up).
      if (!operation.isTurnAwaited) this.turnOff();
      if (shutdown.state === 'draining') shutdown.finish();
      return;
    }
    expiry.arm(nowMs);
    if (!this.isPollDue) return;
    this.isPollDue = false;
    // A flow at its cap waits for its own leases, whatever the gate says.
    const isGateAwaited = !isPoolEmpty && waiting > bands.parked;
    let delayMs = isGateAwaited ? gate.recheckMs : Infinity;
    if (placement.implicitEndpoint === undefined) delayMs = Math.min(delayMs, gate.returnsAtMs(nowMs) - nowMs);
    if (isGateAwaited) for (const part of parts.looksAtMs) delayMs = Math.min(delayMs, part.looksAtMs(nowMs) - nowMs);
    delayMs = Math.min(delayMs, gate.constraints.roomAtMs - nowMs);
    if (this.isGivingUp) delayMs = Math.min(delayMs, this.recheckIntervalMs);
    if (this.isPaused && !operation.tellsTurns) delayMs = 0;
    const mayStop = this.hasWalked && this.poller.isSet;
    this.hasWalked = false;
    if (mayStop || delayMs < Infinity) this.poller.in(delayMs, nowMs);
  }

  private renewAllowance(): void {
    this.dispatchedInTurn = 0;
    this.isPaused = false;
  }

  private turnOff(): void {
    this.isOn = false;
    this.engine.backlog.expiry.disarm();
    this.poller.stop();
  }
}
