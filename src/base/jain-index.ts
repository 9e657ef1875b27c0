/** How evenly something is shared, as one number. */

/**
 * Jain's index, `(Σx)² / (n · Σx²)`: 1 when all values are equal, 1/n when one has everything, whatever their scale.
 * They are finite, from 0 up. It is 1 for fewer than two values, and when all are 0: equal shares of nothing.
 * Differs from inference-sim, whose index of no values is 0: a gauge that falls to 0 without traffic raises alarms.
 * Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness" (1984); llm-d-router, program-aware-fairness.
 */
export function jainIndex(values: Iterable<number>): number {
  const shares = [...values];
  const largest = shares.reduce((most, share) => Math.max(most, share), 0);
  if (shares.length < 2 || largest === 0) return 1;
  let sum = 0;
  let sumOfSquares = 0;
  for (const share of shares) {
    // Relative to the largest, so that squares of very large or very small values stay within the range of a number.
    const relative = share / largest;
    sum += relative;
    sumOfSquares += relative * relative;
  }
  return (sum * sum) / (shares.length * sumOfSquares);
}
