/**
 * Who is running, and where: takes the seat, moves it, gives it back.
 *
 * Invariant: `inFlight` = unreleased leases; each holds exactly one seat on one endpoint.
 */

import { describeValue, FlowConfigError } from '../../base/faults/flow-config-error.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { EndpointPool } from '../../endpoints/endpoint-pool.js';
import type { Gate } from '../../gate/gate.js';
import type { SeatLease } from './seat-lease.js';

export class InFlightLedger {
  inFlight = 0;
  inFlightTokens = 0;
  readonly pool: EndpointPool;
  private readonly gate: Gate;
  private readonly onPoolChange: () => void;

  /** `onPoolChange` is what the pool calls when it changed; not for a seat that is given back here. */
  constructor(pool: EndpointPool, gate: Gate, onPoolChange: () => void) {
    this.pool = pool;
    this.gate = gate;
    this.onPoolChange = onPoolChange;
  }

  take(lease: SeatLease): void {
    this.inFlight++;
    this.inFlightTokens += lease.tokens;
    this.pool.book(lease.seat, lease);
    this.gate.dispatched(lease.seat, lease.dispatchedAtMs);
  }

  giveBack(lease: SeatLease, nowMs: number): void {
    this.inFlight--;
    this.inFlightTokens -= lease.tokens;
    this.gate.released(lease.seat, nowMs);
    this.pool.unbook(lease.seat, lease, this.onPoolChange);
  }

  /** @throws FlowConfigError when the pool has no such endpoint */
  move(lease: SeatLease, to: string | EndpointView, nowMs: number): void {
    if (lease.isReleased) {
      throw new FlowConfigError('lease.bind', [{ path: '', expected: 'a lease that is held', got: 'one that was released' }]);
    }
    const id = typeof to === 'string' ? to : to?.id;
    const endpoint = this.pool.get(id);
    if (endpoint === undefined || (typeof to !== 'string' && endpoint !== to)) {
      throw new FlowConfigError('lease.bind', [{ path: 'endpoint', expected: 'an endpoint of the pool', got: describeValue(to) }]);
    }
    if (endpoint === lease.seat) return;
    const from = lease.seat;
    lease.moveTo(endpoint, nowMs);
    this.pool.book(endpoint, lease);
    this.gate.dispatched(endpoint, nowMs);
    this.gate.released(from, nowMs);
    this.pool.unbook(from, lease);
  }
}
