/** The right to run one dispatched request, and its seat in the in-flight ledger until `release`. */

import { describeValue, FlowConfigError } from '../../base/faults/flow-config-error.js';
import type { EndpointView } from '../../endpoints/endpoint.js';
import type { Endpoint } from '../../endpoints/endpoint-pool.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Usage } from '../../tiers/views.js';
import { FlowEvictedError } from '../outcome/flow-evicted-error.js';
import type { Lease } from '../outcome/lease.js';
import type { Outcome } from '../outcome/outcome.js';
import type { QueueItem } from './queue-item.js';

/** Who gave the lease out, and takes it back. */
export interface LeaseOwner {
  release(lease: SeatLease): void;
  bind(lease: SeatLease, endpoint: string | EndpointView): void;
  consumed(lease: SeatLease, usage: Usage): void;
  requeue(lease: SeatLease): Promise<Outcome>;
}

const noUsage: Usage = { promptTokens: 0, completionTokens: 0 };

/** A lease with the bookkeeping behind it. */
export class SeatLease implements Lease {
  usage: Usage = noUsage;
  isReleased = false;
  isEvictable = false;
  isEvicted = false;
  private controller: AbortController | undefined = undefined;
  private readonly owner: LeaseOwner;
  /** Keeps its payload while somebody wants to know it at the end. */
  readonly item: QueueItem;
  /** Set while the band's fairness policy wants to hear of the end. */
  readonly flow: Flow | undefined;
  /** Where the seat is booked, and since when. */
  seat: Endpoint;
  /** Since when, for a lease that was moved. */
  private movedAtMs: number | undefined = undefined;
  readonly dispatchedAtMs: number;

  constructor(owner: LeaseOwner, item: QueueItem, flow: Flow | undefined, seat: Endpoint, dispatchedAtMs: number) {
    this.owner = owner;
    this.item = item;
    this.flow = flow;
    this.seat = seat;
    this.dispatchedAtMs = dispatchedAtMs;
  }

  get fairnessId(): string {
    return this.item.fairnessId;
  }

  get priority(): number {
    return this.item.priority;
  }

  get tokens(): number {
    return this.item.tokens;
  }

  get band(): PriorityBand {
    return this.item.band as PriorityBand;
  }

  get seatedAtMs(): number {
    return this.movedAtMs ?? this.dispatchedAtMs;
  }

  moveTo(seat: Endpoint, nowMs: number): void {
    this.seat = seat;
    this.movedAtMs = nowMs;
  }

  get endpoint(): EndpointView | undefined {
    return this.seat.isImplicit ? undefined : this.seat;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  abort(reason?: unknown): void {
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }

  /** Asks for the seat; it stays taken until `release`. */
  evict(): void {
    this.isEvicted = true;
    this.abort(new FlowEvictedError());
  }

  bind(endpoint: string | EndpointView): void {
    this.owner.bind(this, endpoint);
  }

  report(usage: Partial<Usage>): void {
    const before = this.usage;
    const { promptTokens = before.promptTokens, completionTokens = before.completionTokens } = usage;
    for (const [path, tokens] of Object.entries({ promptTokens, completionTokens })) {
      if (tokens >= 0 && tokens < Number.POSITIVE_INFINITY) continue;
      throw new FlowConfigError('lease.report', [{ path, expected: 'a number from 0 up', got: describeValue(tokens) }]);
    }
    if (this.isReleased) return;
    this.usage = { promptTokens, completionTokens };
    if (this.flow === undefined) return;
    this.owner.consumed(this, {
      promptTokens: promptTokens - before.promptTokens,
      completionTokens: completionTokens - before.completionTokens,
    });
  }

  requeue(): Promise<Outcome> {
    if (this.isReleased || !this.isEvicted) {
      const got = this.isReleased ? 'one that was released' : 'one that was not evicted';
      return Promise.reject(new FlowConfigError('lease.requeue', [{ path: '', expected: 'a lease that was evicted', got }]));
    }
    this.isReleased = true;
    return this.owner.requeue(this);
  }

  release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    this.owner.release(this);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
