/** The place of a priority among bands in descending order. */

/** The place of `priority` in `bands`, or the place where it belongs. O(log n). */
export function position(bands: readonly { readonly priority: number }[], priority: number): number {
  let low = 0;
  let high = bands.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((bands[middle] as { readonly priority: number }).priority > priority) low = middle + 1;
    else high = middle;
  }
  return low;
}
