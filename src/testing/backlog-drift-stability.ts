/** Stability by whether more and more requests are in flight. */
import { schemas } from '../index.js';
import { confidenceIn, noiseFloorOf, nothingSeen, type Stability } from './stability.js';

export interface BacklogRun {
  /** When requests came, ms, in any order. */
  readonly arrivalsAtMs: readonly number[];
  /** When requests left, ms, in any order. */
  readonly completionsAtMs: readonly number[];
  /** Width of the buckets, ms above 0. @default 60_000 */
  readonly bucketMs?: number | undefined;
}

/**
 * Slope s of the least-squares line through the requests in flight at the end of each bucket of time, per bucket; noise floor
 * f = `1/√arrivals`. s <= f: STABLE; s <= 3f: BACKLOGGED; else OVERLOADED. Score = `min(1, max(0, s)/3f)`, confidence = `min(1, arrivals/20)`.
 * Buckets begin at multiples of their width; the first and the last are those with the first and the last event.
 * Source: BLIS, its backlog-drift detector. O(events + buckets).
 * @throws FlowConfigError
 */
export function backlogDriftStability({ arrivalsAtMs, completionsAtMs, bucketMs = 60_000 }: BacklogRun): Stability {
  const widthMs = schemas.parse(schemas.aboveZero(), bucketMs, 'backlogDriftStability bucketMs');
  const arrivals = arrivalsAtMs.length;
  if (arrivals === 0) return nothingSeen;
  const slope = slopeOf(inFlightPerBucket(arrivalsAtMs, completionsAtMs, widthMs));
  const noiseFloor = noiseFloorOf(arrivals);
  const level = slope <= noiseFloor ? 'STABLE' : slope <= 3 * noiseFloor ? 'BACKLOGGED' : 'OVERLOADED';
  return { level, score: Math.min(1, Math.max(0, slope) / (3 * noiseFloor)), confidence: confidenceIn(arrivals) };
}

/** Requests in flight at the end of each bucket; one without an event repeats the one before. */
function inFlightPerBucket(arrivalsAtMs: readonly number[], completionsAtMs: readonly number[], widthMs: number): number[] {
  const changes = new Map<number, number>();
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  const count = (atMs: number, change: number): void => {
    const bucket = Math.floor(atMs / widthMs);
    changes.set(bucket, (changes.get(bucket) ?? 0) + change);
    first = Math.min(first, bucket);
    last = Math.max(last, bucket);
  };
  for (const atMs of arrivalsAtMs) count(atMs, 1);
  for (const atMs of completionsAtMs) count(atMs, -1);
  let inFlight = 0;
  return Array.from({ length: last - first + 1 }, (_, index) => {
    inFlight += changes.get(first + index) ?? 0;
    return inFlight;
  });
}

/** Of the least-squares line through equidistant values; 0 for fewer than two. */
function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  let covariance = 0;
  let variance = 0;
  for (const [index, value] of values.entries()) {
    covariance += (index - middle) * value;
    variance += (index - middle) ** 2;
  }
  return variance === 0 ? 0 : covariance / variance;
}
