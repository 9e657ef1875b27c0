/** How many requests come to a band and go from it, how often, and when the last did. */

const windowMs = 1000;
/** Share of the newest window in the average. Source: llm-d-router, drain-rate estimate of its Retry-After proposal. */
const alpha = 0.3;

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

/** Events per second, weighted exponentially over windows of about 1 s, closed by `sample` and `perSecond`. */
export class EventRate {
  private average: number | undefined = undefined;
  private windowStartMs: number;
  /** The counter when the window began. */
  private countAtStart = 0;

  constructor(nowMs: number) {
    this.windowStartMs = nowMs;
  }

  /** Takes the counter, and closes the window when it is over. */
  sample(count: number, nowMs: number): void {
    const windows = (nowMs - this.windowStartMs) / windowMs;
    if (windows < 1) return;
    const inWindow = count - this.countAtStart;
    const rate = inWindow / windows;
    const weight = 1 - (1 - alpha) ** windows;
    if (this.average !== undefined) this.average += weight * (rate - this.average);
    else if (inWindow > 0) this.average = rate;
    this.windowStartMs = nowMs;
    this.countAtStart = count;
  }

  /** Undefined when nothing was measured. */
  perSecond(count: number, nowMs: number): number | undefined {
    this.sample(count, nowMs);
    const rate = Math.max(this.average ?? 0, count - this.countAtStart);
    return rate > 0 ? rate : undefined;
  }
}
