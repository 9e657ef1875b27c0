/** How full a capacity limit is: occupancy ÷ limit. */

/** Undefined where there is no limit: absent is not empty. A limit of 0 is always full. */
export function utilization(used: number, max: number): number | undefined {
  if (max === Number.POSITIVE_INFINITY) return undefined;
  return max === 0 ? 1 : used / max;
}
