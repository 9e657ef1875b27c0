// Does the heap grow? A line through the samples, by least squares, and how sure its slope is.

/** Growth that would not be noticed in a day of service. */
const negligibleBytes = 1_000_000;
const negligibleShare = 0.05;
/** Standard errors beyond which a slope is no accident. */
const certainty = 3;

/** `samples`: `[{ atMs, bytes }]` → the growth over all of them, and whether it is one. */
export function heapTrend(samples) {
  const count = samples.length;
  const meanAtMs = mean(samples.map(({ atMs }) => atMs));
  const meanBytes = mean(samples.map(({ bytes }) => bytes));
  const spread = sum(samples.map(({ atMs }) => (atMs - meanAtMs) ** 2));
  const slope = sum(samples.map(({ atMs, bytes }) => (atMs - meanAtMs) * (bytes - meanBytes))) / spread;
  const residual = sum(samples.map(({ atMs, bytes }) => (bytes - meanBytes - slope * (atMs - meanAtMs)) ** 2));
  const error = Math.sqrt(residual / (count - 2) / spread);
  const durationMs = samples[count - 1].atMs - samples[0].atMs;
  const grownBytes = slope * durationMs;
  const isCertain = slope > certainty * error;
  return {
    meanBytes,
    grownBytes,
    isGrowing: isCertain && grownBytes > Math.max(negligibleBytes, negligibleShare * meanBytes),
  };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => sum(values) / values.length;
