/**
 * The walk: priority band → gate → flow → request → endpoint → lease.
 *
 * *Commitment point*: the seat is taken in the same synchronous step that decides, so that two requests never pass one
 * free slot.
 * *Work conservation and head-of-line blocking*: between operations, nothing waits in a band that the gate is open for,
 * unless the allowance of this turn is spent. A request that no endpoint can take holds back its band, its flow or its
 * class, as `holBlocking` says.
 */
import type { Gate } from '../../gate/gate.js';
import type { BandSelector } from '../../tiers/1-priority/band-selector.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { EventHub } from '../event-hub.js';
import type { Backlog } from './backlog.js';
import { type Drops, overQuota } from './drops.js';
import type { LeaseDesk } from './lease-desk.js';
import type { Operation } from './operation.js';
import type { Parts } from './parts.js';
import type { Placement } from './placement.js';
import type { QueueItem } from './queue-item.js';
import type { Wakeups } from './wakeups.js';

/** Times one operation in sixteen: timing all costs half a dispatch. */
export const timedOneIn = 16;

export interface DispatcherParts {
  readonly operation: Operation;
  readonly backlog: Backlog;
  readonly gate: Gate;
  readonly placement: Placement;
  readonly selector: BandSelector;
  readonly drops: Drops;
  readonly parts: Parts;
  readonly desk: LeaseDesk;
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

  /** The walk that an operation wanted. */
  work(): void {
    const { operation, placement } = this.engine;
    if (placement.implicitEndpoint === undefined) this.noteRegime();
    if (!this.events.heard.walked || this.walks++ % timedOneIn !== 0) {
      this.walk();
      return;
    }
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
    const { operation, backlog, drops, parts, gate, wakeups } = this.engine;
    wakeups.walkBegins();
    // What became overdue since the reading that this operation shares must not go.
    if (operation.isBehind && backlog.expiry.isUsed) operation.read();
    const { nowMs } = operation;
    if (gate.constraints.areAny) gate.constraints.forgetRoom();
    let floor = Number.NEGATIVE_INFINITY;
    while (backlog.waiting > 0) {
      if (wakeups.isPaused) return;
      const band = this.nextBand(floor);
      if (band === undefined) break;
      const item = band.next(nowMs) as QueueItem;
      if (backlog.expiry.isDue(item, nowMs)) drops.evictOverdue(item);
      else if (band.ordering.dropsInfeasible && band.ordering.isInfeasible(item, nowMs))
        drops.evict(item, 'EvictedOther', 'infeasible');
      else if (!(parts.areUsed && this.parks(item, band)) && !this.dispatch(item, band) && !this.holdBackOrDrop(item)) {
        floor = band.priority;
        if (band.ordering.dropsInfeasible) wakeups.mayGiveUp();
      }
    }
    const isClosed = backlog.waiting > backlog.bands.parked;
    if (this.isGateClosed !== isClosed) this.noteGate(isClosed);
    if (isClosed) for (const part of parts.gateClosed) part.gateClosed(nowMs);
  }

  /** Tier 1 and the gate: a band above `floor` that may dispatch now. */
  private nextBand(floor: number): PriorityBand | undefined {
    const { operation, backlog, gate, selector } = this.engine;
    if (!selector.isPlain) return selector.next(operation.nowMs, floor);
    const highest = backlog.bands.highestWaiting;
    return highest !== undefined && highest.priority > floor && gate.admits(highest, operation.nowMs)
      ? highest
      : undefined;
  }

  /** False when no endpoint can take the request. */
  private dispatch(item: QueueItem, band: PriorityBand): boolean {
    const { operation, backlog, desk, parts, placement, wakeups } = this.engine;
    const endpoint = placement.direct ?? placement.choose(item, operation.nowMs);
    if (endpoint === undefined) return false;
    for (const part of parts.revokes) if (part.revokes(item)) return true;
    wakeups.spend();
    const settle = backlog.take(item, band, operation.nowMs);
    settle(desk.grant(item, band, band.hearsSettlements ? item.flow : undefined, endpoint));
    return true;
  }

  /** True when a part has parked the flow of the request. */
  private parks(item: QueueItem, band: PriorityBand): boolean {
    return this.engine.parts.parks.some((part) => part.parks(item, band));
  }

  /**
   * Decides what happens to a request that no endpoint can take. False when its band and those below must wait as well.
   */
  private holdBackOrDrop(item: QueueItem): boolean {
    const { operation, backlog, drops, gate, placement, selector } = this.engine;
    if (!placement.isServed(item.requestClass)) {
      drops.evict(item, 'EvictedNoEndpoints', 'no-endpoints');
      return true;
    }
    if (gate.constraints.areAny) {
      const wait = placement.waitOf(item, operation.nowMs);
      if (wait !== undefined && wait.notBeforeMs > backlog.expiry.deadlineOf(item)) {
        drops.evict(item, 'EvictedOther', 'over-quota', overQuota(wait, operation.nowMs));
        return true;
      }
    }
    // Foreign code may have emptied the pool in the meantime; the walk that it asked for comes next.
    return placement.hasEndpoints && selector.holdBack(item.flow as Flow);
  }
}
