/** How often something happens of late, from a counter kept elsewhere: a band's arrivals, and its dispatches. */

const windowMs = 1000;
/** Share of the newest window in the average. Source: llm-d-router, drain-rate estimate of its Retry-After proposal. */
const alpha = 0.3;

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
