/** What is said after a run about whether the system kept up. */

/**
 * - `STABLE`: it kept up.
 * - `BACKLOGGED`: work was left behind, and did not grow clearly.
 * - `OVERLOADED`: it got slower and slower, or more and more was waiting.
 */
export type StabilityLevel = 'STABLE' | 'BACKLOGGED' | 'OVERLOADED';

export interface Stability {
  readonly level: StabilityLevel;
  /** How bad it was, from 0 to 1. Scores of different detectors do not compare. */
  readonly score: number;
  /** How much was seen, from 0 to 1. */
  readonly confidence: number;
}

/** What is said when nothing was seen. */
export const nothingSeen: Stability = { level: 'STABLE', score: 0, confidence: 0 };

/** What chance alone moves a figure by: 1/√arrivals. */
export function noiseFloorOf(arrivals: number): number {
  return 1 / Math.sqrt(arrivals);
}

/** Full confidence from 20 arrivals on. */
export function confidenceIn(arrivals: number): number {
  return Math.min(1, arrivals / 20);
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
