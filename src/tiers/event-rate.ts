/** How often something happens of late: a band's arrivals, and its dispatches, from which `Retry-After` is computed. */

const windowMs = 1000;
/** Share of the newest window in the average. Source: llm-d-router, the drain-rate estimate of its Retry-After proposal. */
const alpha = 0.3;

/** Events per second as an exponentially weighted average over windows of one second; folded when used, no timer. */
export class EventRate {
  private average: number | undefined = undefined;
  private windowStartMs: number;
  private inWindow = 0;

  constructor(nowMs: number) {
    this.windowStartMs = nowMs;
  }

  record(nowMs: number): void {
    if (nowMs - this.windowStartMs >= windowMs) this.fold(nowMs);
    this.inWindow++;
  }

  /** Undefined when nothing was measured. */
  perSecond(nowMs: number): number | undefined {
    if (nowMs - this.windowStartMs >= windowMs) this.fold(nowMs);
    const rate = Math.max(this.average ?? 0, this.inWindow);
    return rate > 0 ? rate : undefined;
  }

  private fold(nowMs: number): void {
    const windows = (nowMs - this.windowStartMs) / windowMs;
    const rate = this.inWindow / windows;
    const weight = 1 - (1 - alpha) ** windows;
    if (this.average !== undefined) this.average += weight * (rate - this.average);
    else if (this.inWindow > 0) this.average = rate;
    this.windowStartMs = nowMs;
    this.inWindow = 0;
  }
}
