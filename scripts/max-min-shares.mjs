/**
 * Max-min fair shares of `capacity`: nobody gets more than it asks for; the rest is shared evenly among those that ask
 * for more. Source: Bertsekas, Gallager, "Data networks".
 * @param {readonly number[]} demands
 * @param {number} capacity
 * @returns {number[]}
 */
export function maxMinShares(demands, capacity) {
  const order = demands.map((_, index) => index).sort((a, b) => demands[a] - demands[b]);
  const shares = demands.map(() => 0);
  let left = capacity;
  for (const [place, index] of order.entries()) {
    shares[index] = Math.min(demands[index], left / (order.length - place));
    left -= shares[index];
  }
  return shares;
}
