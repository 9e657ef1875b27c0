/** Order statistics of a stream: exact while there are few figures, by narrow buckets afterwards, in bounded memory. */

/** In ms. The p-th percentile is the smallest that p percent do not exceed; of none it is NaN (JSON: `null`). */
export interface Latency {
  readonly count: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** False: percentiles are within 0.1 %. */
  readonly isExact: boolean;
}

/** This many samples are kept one by one. */
const exactSamples: number = 2 ** 17;
const smallest = 1e-3;
const bucketWidth = 0.002;
const buckets = Math.ceil(Math.log(1e12) / bucketWidth) + 2;

export class Samples {
  count = 0;
  private sum = 0;
  private max = 0;
  private kept: number[] = [];
  private counts: Float64Array | undefined = undefined;

  add(value: number): void {
    if (this.count === exactSamples && this.counts === undefined) {
      this.counts = new Float64Array(buckets);
      for (const known of this.kept) this.counts[bucketOf(known)]!++;
      this.kept = [];
    }
    this.count++;
    this.sum += value;
    if (value > this.max) this.max = value;
    if (this.counts !== undefined) this.counts[bucketOf(value)]!++;
    else this.kept.push(value);
  }

  /** `percent` above 0, at most 100. */
  percentile(percent: number): number {
    if (this.count === 0) return NaN;
    const rank = Math.max(1, Math.ceil((percent / 100) * this.count));
    if (this.counts === undefined) {
      // In one pass where they are in order since they were asked for before.
      return this.kept.sort((a, b) => a - b)[rank - 1] as number;
    }
    let seen = 0;
    for (let index = 0; index < buckets; index++) {
      seen += this.counts[index] as number;
      const middle = index === 0 ? 0 : smallest * Math.exp((index - 0.5) * bucketWidth);
      if (seen >= rank) return Math.min(this.max, middle);
    }
    return this.max;
  }

  figures(): Latency {
    return {
      count: this.count,
      meanMs: this.sum / this.count,
      p50Ms: this.percentile(50),
      p95Ms: this.percentile(95),
      p99Ms: this.percentile(99),
      maxMs: this.count === 0 ? NaN : this.max,
      isExact: this.counts === undefined,
    };
  }
}

function bucketOf(value: number): number {
  return value <= smallest ? 0 : Math.min(buckets - 1, 1 + Math.floor(Math.log(value / smallest) / bucketWidth));
}
