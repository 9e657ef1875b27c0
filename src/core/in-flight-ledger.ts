/**
 * Who is running, and where: chooses the endpoint, takes the seat, gives it back.
 *
 * Invariant: `inFlight` = unreleased leases; each holds exactly one seat on one endpoint.
 */

import type { EndpointView } from '../endpoints/endpoint.js';
import type { EndpointPicker } from '../endpoints/endpoint-picker.js';
import type { Endpoint, EndpointPool } from '../endpoints/endpoint-pool.js';
import { leastLoaded } from '../endpoints/least-loaded.js';
import type { Gate } from '../gate/gate.js';
import { describeValue, FlowConfigError } from '../options/flow-config-error.js';
import type { PluginErrorSink } from '../plugins/plugin-errors.js';
import type { SeatLease } from './lease.js';
import type { QueueItem } from './queue-item.js';

const fallbackPicker = leastLoaded();

export class InFlightLedger {
  inFlight = 0;
  inFlightTokens = 0;
  readonly pool: EndpointPool;
  private readonly gate: Gate;
  private readonly errors: PluginErrorSink;
  picker: EndpointPicker;

  constructor(pool: EndpointPool, gate: Gate, errors: PluginErrorSink, picker: EndpointPicker) {
    this.pool = pool;
    this.gate = gate;
    this.errors = errors;
    this.picker = picker;
  }

  /** The endpoint that gets the request; undefined when there is none, because foreign code emptied the pool meanwhile. */
  choose(item: QueueItem, nowMs: number): Endpoint | undefined {
    const all = this.pool.endpoints;
    if (all.length <= 1) return all[0];
    const eligible = this.gate.eligible(nowMs);
    try {
      const choice = this.member(this.picker.pick(eligible, item, nowMs));
      if (choice !== undefined) return choice;
      this.pickerFailed(new TypeError('pick must return one of the endpoints it was given'));
    } catch (error) {
      this.pickerFailed(error);
    }
    return this.member(fallbackPicker.pick(this.pool.endpoints, item, nowMs));
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
    this.pool.unbook(lease.seat, lease);
  }

  /** @throws FlowConfigError when the pool has no such endpoint */
  move(lease: SeatLease, to: string | EndpointView, nowMs: number): void {
    if (lease.isReleased) {
      throw new FlowConfigError('lease.bind', [{ path: '', expected: 'a lease that is held', got: 'one that was released' }]);
    }
    const endpoint = typeof to === 'string' ? this.pool.get(to) : this.member(to);
    if (endpoint === undefined) {
      throw new FlowConfigError('lease.bind', [{ path: 'endpoint', expected: 'an endpoint of the pool', got: describeValue(to) }]);
    }
    if (endpoint === lease.seat) return;
    const from = lease.seat;
    lease.seat = endpoint;
    lease.seatedAtMs = nowMs;
    this.pool.book(endpoint, lease);
    this.gate.dispatched(endpoint, nowMs);
    this.gate.released(from, nowMs);
    this.pool.unbook(from, lease);
  }

  /** The endpoint behind a view; undefined for anything that is no member of the pool. */
  private member(view: EndpointView | undefined): Endpoint | undefined {
    const endpoint = this.pool.get(view?.id ?? '');
    return endpoint === view ? endpoint : undefined;
  }

  private pickerFailed(error: unknown): void {
    this.errors.pluginFailed('endpointPicker', this.picker.type, error);
  }
}
