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

/** Takes a latency, or a drop (undefined). Returns the window if this was its last. O(1); percentiles sort. */
export type TakeLatency = (latency: number | undefined, nowMs: number) => LatencyWindow | undefined;

export function latencyWindows(statistic: LatencyStatistic, windowMs: number, minSamples: number): TakeLatency {
  const ranked = statistic === 'mean' ? undefined : new Float64Array(mostRanked);
  let [startedAtMs, samples, drops, sum] = [0, 0, 0, 0];

  function summarize(): number {
    if (ranked === undefined) return sum / samples;
    const sorted = ranked.slice(0, Math.min(samples, mostRanked)).sort();
    return sorted[Math.ceil((statistic === 'p50' ? 0.5 : 0.9) * sorted.length) - 1] as number;
  }

  return (latency, nowMs) => {
    if (samples + drops === 0) startedAtMs = nowMs;
    if (latency === undefined) drops++;
    else {
      if (ranked !== undefined) ranked[samples % mostRanked] = latency;
      sum += latency;
      samples++;
    }
    if (nowMs - startedAtMs < windowMs || samples + drops < minSamples) return undefined;
    const figure = samples === 0 ? undefined : summarize();
    const window = { startedAtMs, endedAtMs: nowMs, samples, drops, latency: figure };
    [samples, drops, sum] = [0, 0, 0];
    return window;
  };
}
