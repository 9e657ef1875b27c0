/** Running requests, and demands before a closed gate that make the controller ask for their seats. */

import { expect } from 'vitest';
import { inFlightEviction } from '../../../src/core/eviction.js';
import type { EvictionOptions } from '../../../src/eviction/eviction-policy.js';
import type { EvictionFilter } from '../../../src/index.js';
import { Rig, type Ticket } from './rig.js';

export interface Running {
  readonly id: string;
  readonly priority: number;
  /** Before or after instant 0. */
  readonly dispatchMs?: number;
}

export const acceptAll: EvictionFilter = { type: 'accept-all', accepts: () => true };

/** Higher than any priority of a vector. */
const aboveAll = 1_000_000;
/** So full that everybody would have to leave. */
const hopelesslyFull = 1e9;

export class EvictionPlay {
  readonly rig: Rig;
  /** Who was asked to leave, in order. */
  readonly asked: Ticket[] = [];
  private readonly running = new Map<string, Ticket>();
  private readonly eviction: EvictionOptions;

  constructor(eviction: EvictionOptions = {}, startMs = 0) {
    this.eviction = eviction;
    this.rig = new Rig({ eviction: inFlightEviction(eviction), defaultRequestTtl: 0 }, { startMs });
    this.rig.flow.on('evicted', ({ lease }) => {
      this.asked.push(this.rig.dispatched.find((ticket) => ticket.lease === lease) as Ticket);
    });
  }

  /** Lets a request run; one that runs under the same ID has ended. */
  track({ id, priority }: Running): Ticket {
    this.untrack(id);
    this.rig.gate.open(1);
    const ticket = this.rig.enqueue({ priority }, id);
    this.rig.gate.close();
    expect(ticket.state).toBe('Dispatched');
    this.running.set(id, ticket);
    return ticket;
  }

  /** The same for several, each at its instant. */
  trackAll(requests: readonly Running[]): void {
    for (const request of [...requests].sort((a, b) => (a.dispatchMs ?? 0) - (b.dispatchMs ?? 0))) {
      this.rig.advanceTo(request.dispatchMs ?? this.rig.nowMs);
      this.track(request);
    }
  }

  untrack(id: string): void {
    this.running.get(id)?.lease?.release();
    this.running.delete(id);
  }

  ticketOf(id: string): Ticket | undefined {
    return this.running.get(id);
  }

  /**
   * Those whom a request of this priority makes leave in one decision for at most `count`; it does not stay to see it.
   */
  ask(count: number, priority: number = aboveAll): Ticket[] {
    const before = this.asked.length;
    if (count === 0) {
      // Nobody has to leave while there is room.
      this.rig.gate.open(1);
      this.rig.enqueue({ priority }).lease?.release();
      this.rig.gate.close();
    } else {
      this.rig.flow.reconfigure({ eviction: inFlightEviction({ ...this.eviction, maxPerDecision: count }) });
      this.rig.gate.saturationWhenClosed = hopelesslyFull;
      this.rig.enqueue({ priority }).abort.abort();
    }
    return this.asked.slice(before);
  }

  /** The same, and they leave. */
  pop(count: number, priority?: number): Ticket[] {
    const victims = this.ask(count, priority);
    for (const { id } of victims) this.untrack(id);
    return victims;
  }

  get inFlight(): number {
    return this.rig.flow.stats().inFlight;
  }

  /** Running requests that may be asked, and were not. */
  get evictable(): number {
    return [...this.running.values()].filter(({ lease }) => lease?.isEvictable === true && !lease.isEvicted).length;
  }
}
