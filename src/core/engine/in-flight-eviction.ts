/** Running requests give up their seats for waiting ones of higher priority: a part, while the option `eviction` is. */
import { InFlightEvictor, type ReclaimFigures } from '../../eviction/in-flight-evictor.js';
import { SeatReserve } from '../../gate/seat-reserve.js';
import type { Ending } from '../../tiers/2-fairness/fairness-policy.js';
import type { EventHub } from '../event-hub.js';
import type { ResolvedEviction } from '../options.js';
import { FlowEvictedError } from '../outcome/flow-evicted-error.js';
import type { DispatcherParts } from './dispatcher.js';
import type { Part } from './parts.js';
import { own, type SeatLease } from './seats.js';

export interface EvictionParts extends Pick<DispatcherParts, 'operation' | 'backlog' | 'gate' | 'seats'> {
  readonly events: EventHub;
}

export class InFlightEviction implements Part {
  readonly keepsPayload = true;
  readonly evictor: InFlightEvictor<SeatLease>;
  private readonly engine: EvictionParts;
  private readonly reserve: SeatReserve;

  constructor(engine: EvictionParts, settings: ResolvedEviction) {
    this.engine = engine;
    this.evictor = new InFlightEvictor(settings, engine.events);
    this.reserve = new SeatReserve(settings.reserveMs);
    this.configure(settings);
  }

  configure(settings: ResolvedEviction): void {
    const { reserve } = this;
    this.evictor.configure(settings);
    reserve.windowMs = settings.reserveMs;
    this.engine.gate.keepFree(settings.reserveMs === 0 ? undefined : reserve);
  }

  /** Whoever waits may be worth a seat that runs. */
  queued(): void {
    this.engine.operation.want();
  }

  seated(lease: SeatLease): void {
    this.evictor.track(lease);
  }

  ended(lease: SeatLease, _ending: Ending, nowMs: number): void {
    this.evictor.untrack(lease, nowMs);
  }

  /** Asks running requests to leave for the bands that wait, highest first. Their seats stay taken until `release`. */
  gateClosed(nowMs: number): void {
    const { backlog, gate, seats, events } = this.engine;
    if (backlog.isPoolEmpty) return;
    for (const lease of this.evictor.victims(backlog.bands.allCompeting(), gate, seats.inFlight, nowMs)) {
      seats.evicted++;
      own(lease).isEvicted = true;
      lease.abort(new FlowEvictedError());
      if (events.heard.evicted) events.emit('evicted', { lease: lease.face });
    }
  }

  /** The instant at which the last decision to evict is settled, or the reserve shrinks. */
  looksAtMs(nowMs: number): number {
    return Math.min(this.evictor.settlesAtMs, this.engine.gate.reserve?.shrinksAtMs(nowMs) ?? Infinity);
  }

  get figures(): ReclaimFigures {
    return this.evictor.figures(this.engine.backlog.bands.allCompeting(), this.engine.gate);
  }
}
