/**
 * Running requests give up their seats for waiting ones of higher priority. It is there while the option `eviction` is.
 * Requests that are in flight when it is switched on are left alone.
 */
import type { InFlightEvictor, ReclaimFigures } from '../../eviction/in-flight-evictor.js';
import type { Gate } from '../../gate/gate.js';
import type { Ending } from '../../tiers/2-fairness/fairness-policy.js';
import type { EventHub } from '../event-hub.js';
import type { ResolvedEviction } from '../options.js';
import type { Backlog } from './backlog.js';
import type { Operation } from './operation.js';
import type { Part } from './parts.js';
import type { SeatLease, Seats } from './seats.js';

export class InFlightEviction implements Part {
  readonly keepsPayload = true;
  readonly evictor: InFlightEvictor<SeatLease>;
  private readonly operation: Operation;
  private readonly backlog: Backlog;
  private readonly gate: Gate;
  private readonly seats: Seats;
  private readonly events: EventHub;

  constructor(
    settings: ResolvedEviction,
    operation: Operation,
    backlog: Backlog,
    gate: Gate,
    seats: Seats,
    events: EventHub,
  ) {
    this.evictor = settings.evictor(settings, events);
    this.operation = operation;
    this.backlog = backlog;
    this.gate = gate;
    this.seats = seats;
    this.events = events;
  }

  /** Whoever waits may be worth a seat that runs. */
  queued(): void {
    this.operation.want();
  }

  seated(lease: SeatLease): void {
    this.evictor.track(lease);
  }

  ended(lease: SeatLease, _ending: Ending, nowMs: number): void {
    this.evictor.untrack(lease, nowMs);
  }

  /** Asks running requests to leave for the bands that wait, highest first. */
  gateClosed(nowMs: number): void {
    if (this.backlog.isPoolEmpty) return;
    const { evictor, gate, seats, events } = this;
    for (const lease of evictor.victims(this.backlog.bands.allCompeting(), gate, seats.inFlight, nowMs)) {
      seats.evicted++;
      lease.evict();
      if (events.heard.evicted) events.emit('evicted', { lease });
    }
  }

  /** The instant at which the last decision to evict is settled, or the reserve shrinks. */
  looksAtMs(nowMs: number): number {
    return Math.min(this.evictor.settlesAtMs, this.gate.reserve?.shrinksAtMs(nowMs) ?? Number.POSITIVE_INFINITY);
  }

  get figures(): ReclaimFigures {
    return this.evictor.figures(this.backlog.bands.allCompeting(), this.gate);
  }
}
