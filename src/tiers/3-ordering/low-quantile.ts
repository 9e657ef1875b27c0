/** The time that nearly every request takes at least: the first decile of the latest durations. */

/** Durations that are remembered. */
const size = 100;
/** With fewer durations there is no estimate. */
const fewest = 20;
/** Durations between two looks, because sorting for each would cost more than the request. A divisor of `size`. */
const reviewEvery = 10;

/** 0 until enough is known. O(1) amortized. */
export class LowQuantile {
  value = 0;
  private readonly latest: number[] = [];
  private place = 0;

  add(durationMs: number): void {
    this.latest[this.place] = durationMs;
    this.place = (this.place + 1) % size;
    if (this.place % reviewEvery !== 0 || this.latest.length < fewest) return;
    const sorted = [...this.latest].sort((a, b) => a - b);
    this.value = sorted[Math.floor(sorted.length / 10)] as number;
  }
}
