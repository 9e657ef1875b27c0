/** How many requests come to a band and go from it, how often, and when the last did. */
import { EventRate } from './event-rate.js';

export class BandTraffic {
  /** Requests that were handed in, whatever became of them. Written by BandRegistry. */
  arrived = 0;
  /** Requests that were dispatched. Written by Seats. */
  dispatched = 0;
  /** The instant at which a request last came. Written by BandRegistry. */
  arrivedAtMs: number;
  /** The instant at which a waiting request last left. Written by PriorityBand. */
  leftAtMs: number;
  private readonly arrivalRate: EventRate;
  private readonly dispatchRate: EventRate;

  constructor(nowMs: number) {
    this.arrivedAtMs = nowMs;
    this.leftAtMs = nowMs;
    this.arrivalRate = new EventRate(nowMs);
    this.dispatchRate = new EventRate(nowMs);
  }

  /** The instant at which a request last came or left; it decides when an idle band is collected. */
  get lastUsedMs(): number {
    return Math.max(this.arrivedAtMs, this.leftAtMs);
  }

  /** Undefined when nothing was measured. */
  arrivedPerSecond(nowMs: number): number | undefined {
    return this.arrivalRate.perSecond(this.arrived, nowMs);
  }

  /** Undefined when nothing was measured. */
  dispatchedPerSecond(nowMs: number): number | undefined {
    return this.dispatchRate.perSecond(this.dispatched, nowMs);
  }

  /** Call it about once a second. */
  sample(nowMs: number): void {
    this.arrivalRate.sample(this.arrived, nowMs);
    this.dispatchRate.sample(this.dispatched, nowMs);
  }
}
