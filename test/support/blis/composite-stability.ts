/** Stability by what was left undone and by latencies that rise. */
import { confidenceIn, mean, noiseFloorOf, nothingSeen, type Stability } from './stability.js';

export interface CompositeRun {
  /** Requests that came. */
  readonly arrivals: number;
  /** End-to-end latencies of those that completed, ms, in the order of their completion. */
  readonly completionLatenciesMs: readonly number[];
}

/** Fewer completions show no trend. */
const fewestForTrend = 20;

/**
 * Rate deficit d = `max(0, 1 − completed/arrivals)`. Latency trend t = (mean of the second half − mean of the first
 * half) / mean of the first half, from 0 to 1, and 0 unless 20 requests completed and the means of the quartiles
 * strictly rise. Score = `max(d, t)`; noise floor f = `1/√arrivals`. Below f: STABLE; t above f: OVERLOADED; else
 * BACKLOGGED. Confidence = `min(1, arrivals/20)`. Source: BLIS, its composite detector.
 */
export function compositeStability({ arrivals, completionLatenciesMs }: CompositeRun): Stability {
  if (arrivals === 0) return nothingSeen;
  const deficit = Math.max(0, 1 - completionLatenciesMs.length / arrivals);
  const trend = trendOf(completionLatenciesMs);
  const score = Math.max(deficit, trend);
  const noiseFloor = noiseFloorOf(arrivals);
  const level = score < noiseFloor ? 'STABLE' : trend > noiseFloor ? 'OVERLOADED' : 'BACKLOGGED';
  return { level, score, confidence: confidenceIn(arrivals) };
}

function trendOf(latenciesMs: readonly number[]): number {
  const count = latenciesMs.length;
  if (count < fewestForTrend) return 0;
  const quarter = Math.floor(count / 4);
  const [first, second, third, last] = [0, 1, 2, 3].map((index) =>
    mean(latenciesMs.slice(index * quarter, index === 3 ? count : (index + 1) * quarter)),
  ) as [number, number, number, number];
  if (!(first < second && second < third && third < last)) return 0;
  const half = Math.floor(count / 2);
  const before = mean(latenciesMs.slice(0, half));
  return Math.min(1, Math.max(0, mean(latenciesMs.slice(half)) - before) / before);
}
