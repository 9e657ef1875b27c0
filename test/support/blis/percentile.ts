/** Percentiles of a report. */
import { parse } from '../../../src/base/schema/element.js';
import { number } from '../../../src/base/schema/types.js';

/**
 * The p-th percentile, 0 <= p <= 100, of values in any order: at rank `p/100 · (n − 1)` of the sorted values, with
 * linear interpolation between neighbours. 0 when there are none. O(n log n). Source: BLIS, its cluster metrics;
 * Hyndman and Fan's definition 7, which is also NumPy's default.
 * @throws FlowConfigError
 */
export function percentile(values: readonly number[], p: number): number {
  const rank = (parse(number({ from: 0, to: 100 }), p, 'percentile p') / 100) * (values.length - 1);
  const sorted = Float64Array.from(values).sort();
  const below = sorted[Math.floor(rank)] ?? 0;
  const above = sorted[Math.ceil(rank)] ?? below;
  return below + (above - below) * (rank - Math.floor(rank));
}
