// Reproducible randomness.

/** Numbers from 0 up to 1. Source: Tommy Ettinger's Mulberry32. */
export function seededRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Ranks from 0 up to `count`, the k-th with a weight of k^-exponent. */
export function zipf(random, count, exponent) {
  const sums = new Float64Array(count);
  let total = 0;
  for (let rank = 0; rank < count; rank++) {
    total += (rank + 1) ** -exponent;
    sums[rank] = total;
  }
  return () => {
    const point = random() * total;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle] < point) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}
