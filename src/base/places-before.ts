/** How many places of a row come before the first for which `isBefore` is false, and stays so. O(log n), n < 2^31. */
export function placesBefore(length: number, isBefore: (place: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
