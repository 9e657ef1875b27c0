/**
 * Gives leases out, and does all that a lease can be asked for. Each call is an operation of its own; only `bind` acts
 * at once, because its caller reads the lease next.
 *
 *     grant ── seat ── parts ── 'dispatched' ──► host ──► report, answered, bind, requeue ──► release ── parts ── seat
 */

import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Endpoint } from '../../endpoints/seat-pool.js';
import type { Gate } from '../../gate/gate.js';
import { isPuttingOff, type ServerAnswer } from '../../gate/server-answer.js';
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
import type { Parts } from './parts.js';
import type { QueueItem, Settle } from './queue-item.js';
import type { LeaseOwner, SeatLease, Seats } from './seats.js';

export interface LeaseDeskParts {
  readonly operation: Operation;
  readonly backlog: Backlog;
  readonly seats: Seats;
  readonly gate: Gate;
  readonly parts: Parts;
}

type WaitAgain = (item: QueueItem, lease: SeatLease, settle: Settle) => void;

export class LeaseDesk implements LeaseOwner {
  /** Leases that were held longer than `maxLeaseMs` so far. */
  overdue = 0;
  /** Undefined without `maxLeaseMs`. */
  private watch: LeaseWatch | undefined = undefined;
  private readonly engine: LeaseDeskParts;
  private readonly events: EventHub;
  private readonly waitAgain: WaitAgain;

  /** `waitAgain` lets a request wait once more whose lease has just ended. */
  constructor(engine: LeaseDeskParts, options: ResolvedOptions, events: EventHub, waitAgain: WaitAgain) {
    this.engine = engine;
    this.events = events;
    this.waitAgain = waitAgain;
    this.configure(options);
  }

  configure({ maxLeaseMs, overdueLeases, clock }: ResolvedOptions): void {
    this.stop();
    this.watch = undefined;
    if (maxLeaseMs === Number.POSITIVE_INFINITY) return;
    const look = (): void => this.engine.operation.perform(() => this.lookAtLeases());
    this.watch = new LeaseWatch(maxLeaseMs, overdueLeases === 'release', clock, look);
    this.lookAtLeases();
  }

  stop(): void {
    this.watch?.stop();
  }

  /** Tells of leases that are held too long, and sets the timer for the next. */
  private lookAtLeases(): void {
    const { seats, operation } = this.engine;
    if (this.watch !== undefined) this.overdue += this.watch.look(seats.running.first, this.events, operation.nowMs);
  }

  /** Takes the seat and hands out the lease. `flow` is given when its fairness policy is told of the end. */
  grant(item: QueueItem, band: PriorityBand, flow: Flow | undefined, endpoint: Endpoint): Dispatched {
    const { operation, seats, gate, parts } = this.engine;
    const { nowMs } = operation;
    const lease = seats.take(item, flow, endpoint, this, nowMs);
    if (this.watch !== undefined && !this.watch.isSet) this.watch.wait(0);
    const queuedMs = nowMs - item.enqueuedAtMs;
    const given = parts.areUsed ? this.tellSeated(lease) : lease;
    if (this.events.heard.dispatched)
      this.events.emit('dispatched', { item, lease, endpoint: lease.endpoint, queuedMs });
    const isKept = parts.areUsed && (parts.keepPayload || item.admittedBy !== undefined);
    if (!isKept && !gate.seats.hears.answered && !band.policies.ordering.hearsFirstTokens) item.releasePayload();
    return { type: 'Dispatched', lease: given, queuedMs };
  }

  release(lease: SeatLease): void {
    const { operation, gate, backlog, parts } = this.engine;
    if (operation.isBusy) {
      operation.perform(() => this.settle(lease));
      return;
    }
    // A reading of the clock is a third of an uncontended release (bench: uncontended).
    const isTimed = lease.flow !== undefined || parts.ended.length > 0 || gate.seats.hears.released;
    operation.begin(isTimed || this.events.heard.released || backlog.waiting > 0);
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

  bind(lease: SeatLease, endpoint: string | EndpointView): void {
    this.engine.seats.move(lease, endpoint, this.engine.operation.now());
  }

  get hearsReports(): boolean {
    return this.engine.gate.seats.hears.reported;
  }

  consumed(lease: SeatLease, usage: Usage): void {
    const { operation, seats } = this.engine;
    const { usage: total } = lease;
    if (operation.isBusy) {
      operation.perform(() => seats.consumed(lease, usage, total, operation.nowMs));
      return;
    }
    operation.begin();
    try {
      seats.consumed(lease, usage, total, operation.nowMs);
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

  private settle(lease: SeatLease, ending: Ending = 'released'): void {
    const { operation, backlog, seats, parts } = this.engine;
    const { flow, item } = lease;
    const { nowMs } = operation;
    seats.giveBack(lease, nowMs, ending);
    if (flow !== undefined) backlog.bands.flows.markIdle(flow, nowMs);
    if (parts.areUsed) for (const part of parts.ended) part.ended(lease, ending, nowMs);
    if (item.request !== undefined) item.releasePayload();
    if (backlog.waiting > 0) operation.want();
    if (this.events.heard.released)
      this.events.emit('released', { lease, usage: lease.usage, heldMs: nowMs - lease.dispatchedAtMs });
  }
}
