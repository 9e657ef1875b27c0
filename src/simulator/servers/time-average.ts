/** The mean of a figure over time, each value counting as long as it stood. */
export class TimeAverage {
  value = 0;
  peak = 0;
  private area = 0;
  private changedAtMs = 0;

  set(value: number, nowMs: number): void {
    this.area += this.value * (nowMs - this.changedAtMs);
    this.changedAtMs = nowMs;
    this.value = value;
    if (value > this.peak) this.peak = value;
  }

  add(difference: number, nowMs: number): void {
    this.set(this.value + difference, nowMs);
  }

  /** From time 0 on; 0 at time 0. */
  mean(nowMs: number): number {
    return nowMs > 0 ? (this.area + this.value * (nowMs - this.changedAtMs)) / nowMs : 0;
  }
}
