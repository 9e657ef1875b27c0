/** Latencies as one figure, once a window is long and full enough. Invariant: it ranks the latest `mostRanked` only. */

/** Latencies that are kept for a percentile. */
const mostRanked = 512;

export type LatencyStatistic = 'mean' | 'p50' | 'p90';

/** A window that is over. Instants are those of the clock that `observe` was called with. */
export interface LatencyWindow {
  /** When the first sample came. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** Requests that were measured, drops excluded. */
  readonly samples: number;
  /** Requests that the server rejected, or that ran into a timeout. */
  readonly drops: number;
  /** The latency of the window, in the unit of the signal; undefined when there were only drops. */
  readonly latency: number | undefined;
}

export class LatencyWindowCollector {
  private startedAtMs = 0;
  private samples = 0;
  private drops = 0;
  private sum = 0;
  private readonly ranked: Float64Array | undefined;
  private readonly statistic: LatencyStatistic;
  private readonly windowMs: number;
  private readonly minSamples: number;

  constructor(statistic: LatencyStatistic, windowMs: number, minSamples: number) {
    this.statistic = statistic;
    this.windowMs = windowMs;
    this.minSamples = minSamples;
    this.ranked = statistic === 'mean' ? undefined : new Float64Array(mostRanked);
  }

  /** Takes a latency, or a drop (undefined). Returns the window if this was its last. O(1); percentiles sort. */
  add(latency: number | undefined, nowMs: number): LatencyWindow | undefined {
    if (this.samples + this.drops === 0) this.startedAtMs = nowMs;
    if (latency === undefined) {
      this.drops++;
    } else {
      if (this.ranked !== undefined) this.ranked[this.samples % mostRanked] = latency;
      this.sum += latency;
      this.samples++;
    }
    if (nowMs - this.startedAtMs < this.windowMs || this.samples + this.drops < this.minSamples) return undefined;
    const { startedAtMs, samples, drops } = this;
    const figure = samples === 0 ? undefined : this.summarize();
    this.samples = 0;
    this.drops = 0;
    this.sum = 0;
    return { startedAtMs, endedAtMs: nowMs, samples, drops, latency: figure };
  }

  private summarize(): number {
    if (this.ranked === undefined) return this.sum / this.samples;
    const sorted = this.ranked.slice(0, Math.min(this.samples, mostRanked)).sort();
    const share = this.statistic === 'p50' ? 0.5 : 0.9;
    return sorted[Math.ceil(share * sorted.length) - 1] as number;
  }
}
