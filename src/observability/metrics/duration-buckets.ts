import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';

/** Upper bounds of the histogram of waits, in s. Source: llm-d-router, whose bounds are all here; more from 5 to 60. */
export const queueDurationBuckets: readonly number[] = [
  0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 7.5, 10, 12.5, 15, 20, 30, 45, 60,
];

/** Of the time that a request which is evicted takes to leave, in s. Source: llm-d-router. */
export const revocationBuckets: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const isRising = (given: readonly unknown[]): boolean =>
  given.every((bound, index) => Number.isFinite(bound) && Number(bound) > Number(given[index - 1] ?? 0));

export const bucketBounds: Schema<readonly number[]> = s.value(
  'a list of seconds above 0 that rise, such as [0.1, 1, 10]',
  (given): given is readonly number[] => Array.isArray(given) && given.length > 0 && isRising(given),
);

/** Upper bounds of the histograms of the controller's own time, in seconds. */
export const cycleDurationBuckets: readonly number[] = [
  0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
];
