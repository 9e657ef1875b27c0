/** Upper bounds of the histogram of waits, in seconds. Source: llm-d-router, its flow control metrics. */
export const queueDurationBuckets: readonly number[] = [
  0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Upper bounds of the histograms of the controller's own time, in seconds. */
export const cycleDurationBuckets: readonly number[] = [
  0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
];
