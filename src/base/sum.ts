/** The sum of a figure of each. */
export function sum<T>(all: Iterable<T>, figure: (one: T) => number): number {
  let total = 0;
  for (const one of all) total += figure(one);
  return total;
}
