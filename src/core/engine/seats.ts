/**
 * What runs: seats are taken at dispatch and given back at release, and everybody who keeps account of them is told here.
 *
 *     take ──► ledger ──► endpoint's seat ──► detectors ──► fairness policy's lease count ──► evictor
 *     giveBack undoes each of them, once
 *
 * Invariant: `inFlight` = unreleased leases; each holds exactly one seat on one endpoint.
 */
import { describeValue, FlowConfigError } from '../../base/faults/flow-config-error.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Endpoint, EndpointPool } from '../../endpoints/endpoint-pool.js';
import { InFlightEvictor, type ReclaimFigures } from '../../eviction/in-flight-evictor.js';
import type { Gate } from '../../gate/gate.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { EventHub } from '../event-hub.js';
import type { ResolvedOptions } from '../options.js';
import type { QueueItem } from './queue-item.js';
import { type LeaseOwner, SeatLease } from './seat-lease.js';

export class Seats {
  inFlight = 0;
  inFlightTokens = 0;
  /** Leases handed out so far, and leases that ended. */
  dispatched = 0;
  released = 0;
  /** Running requests that were asked to leave so far. */
  evicted = 0;
  readonly pool: EndpointPool;
  private evictor: InFlightEvictor<SeatLease> | undefined;
  private readonly gate: Gate;
  private readonly events: EventHub;
  private readonly owner: LeaseOwner;
  private readonly onPoolChange: () => void;

  /** `onPoolChange` is the listener that the pool calls for this controller; it is not called for a seat that is given back here. */
  constructor(
    pool: EndpointPool,
    gate: Gate,
    events: EventHub,
    owner: LeaseOwner,
    { eviction }: ResolvedOptions,
    onPoolChange: () => void,
  ) {
    this.pool = pool;
    this.gate = gate;
    this.events = events;
    this.owner = owner;
    this.onPoolChange = onPoolChange;
    this.evictor = eviction && new InFlightEvictor(eviction, events);
  }

  /** Requests that are in flight when eviction is switched on are left alone. */
  configure({ eviction }: ResolvedOptions): void {
    if (eviction === undefined) this.evictor = undefined;
    else if (this.evictor === undefined) this.evictor = new InFlightEvictor(eviction, this.events);
    else this.evictor.configure(eviction);
  }

  /** True while running requests may be evicted. */
  get mayEvict(): boolean {
    return this.evictor !== undefined;
  }

  /** When the last decision to evict is settled, ms; Infinity while it is. */
  get settlesAtMs(): number {
    return this.evictor === undefined ? Number.POSITIVE_INFINITY : this.evictor.settlesAtMs;
  }

  /** Undefined while nobody may be evicted. */
  reclaimFigures(waiting: readonly PriorityBand[]): ReclaimFigures | undefined {
    return this.evictor?.figures(waiting, this.gate);
  }

  /** Takes a seat at `endpoint` for the request; `flow` when the fairness policy hears of its end. */
  take(item: QueueItem, flow: Flow | undefined, endpoint: Endpoint, nowMs: number): SeatLease {
    const lease = new SeatLease(this.owner, item, flow, endpoint, nowMs);
    const { tokens } = item;
    this.dispatched++;
    this.inFlight++;
    this.inFlightTokens += tokens;
    (item.band as PriorityBand).dispatched++;
    this.pool.book(endpoint, lease, tokens);
    if (flow !== undefined) {
      flow.trackedInFlight++;
      flow.band.trackedInFlight++;
    }
    if (this.gate.hearsDispatches) this.gate.dispatched(endpoint, item.priority, nowMs);
    if (this.evictor !== undefined) lease.isEvictable = this.evictor.track(lease);
    return lease;
  }

  /** Gives the seat back, and settles the request with its fairness policy. */
  giveBack(lease: SeatLease, nowMs: number): void {
    const { flow, seat, item } = lease;
    this.released++;
    this.inFlight--;
    this.inFlightTokens -= item.tokens;
    if (flow !== undefined) {
      flow.trackedInFlight--;
      flow.band.trackedInFlight--;
      flow.band.settled(flow, lease.usage, nowMs, item.tokens);
    }
    if (this.gate.hearsReleases) this.gate.released(seat, nowMs);
    this.pool.unbook(seat, lease, item.tokens, this.onPoolChange);
    if (this.evictor !== undefined) this.evictor.untrack(lease, nowMs);
  }

  /**
   * Books the lease at the endpoint where the host sent its request.
   * @throws FlowConfigError when the pool has no such endpoint, or the lease was released
   */
  move(lease: SeatLease, to: string | EndpointView, nowMs: number): void {
    const endpoint = this.destination(lease, to);
    const from = lease.seat;
    if (endpoint === from) return;
    lease.moveTo(endpoint, nowMs);
    this.pool.book(endpoint, lease, lease.tokens);
    this.gate.seatTaken(endpoint, nowMs);
    this.gate.released(from, nowMs);
    this.pool.unbook(from, lease, lease.tokens);
  }

  /** Asks running requests to leave for the bands that wait, highest first. */
  reclaim(waiting: readonly PriorityBand[], nowMs: number): void {
    if (this.evictor === undefined || this.pool.endpoints.length === 0) return;
    for (const lease of this.evictor.victims(waiting, this.gate, this.inFlight, nowMs)) {
      this.evicted++;
      lease.evict();
      if (this.events.heard.evicted) this.events.emit('evicted', { lease });
    }
  }

  private destination(lease: SeatLease, to: string | EndpointView): Endpoint {
    if (lease.isReleased) {
      throw new FlowConfigError('lease.bind', [{ path: '', expected: 'a lease that is held', got: 'one that was released' }]);
    }
    const endpoint = this.pool.get(typeof to === 'string' ? to : to?.id);
    if (endpoint === undefined || (typeof to !== 'string' && endpoint !== to)) {
      throw new FlowConfigError('lease.bind', [{ path: 'endpoint', expected: 'an endpoint of the pool', got: describeValue(to) }]);
    }
    return endpoint;
  }
}
