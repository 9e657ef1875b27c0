/** Least squares with coefficients from 0 up, by relative errors. */

/** `value` is the sum of the terms, each times its coefficient. */
export interface Equation {
  readonly terms: readonly number[];
  readonly value: number;
}

/** An equation with its share in the sum of squares. */
type Weighted = Equation & { readonly weight: number };

/** More rounds change less than a thousandth. */
const rounds = 10;
/** A miss below this part counts no more than this: a share of 1 over nothing would count alone. */
const smallestMiss = 0.01;

/** Coefficients from 0 up of least relative misses, not squares: half of the equations may be far off. Reweighted. */
export function leastMisses(equations: readonly Equation[]): number[] {
  let coefficients: number[] | undefined;
  for (let round = 0; round < rounds; round++) {
    const known = coefficients;
    coefficients = leastSquares(
      equations.map((equation) => {
        const miss = known === undefined ? 1 : Math.max(smallestMiss, Math.abs(relativeMiss(equation, known)));
        return { ...equation, weight: 1 / (equation.value * Math.sqrt(miss)) };
      }),
    );
  }
  return coefficients ?? [];
}

/** How far the terms are from the value, relative to it: below 0 they are too small. */
export function relativeMiss({ terms, value }: Equation, coefficients: readonly number[]): number {
  return terms.reduce((sum, term, index) => sum + term * (coefficients[index] ?? 0), 0) / value - 1;
}

/** Coefficients from 0 up: those that would be negative are left out, the most negative first. */
function leastSquares(equations: readonly Weighted[]): number[] {
  const { matrix, scale } = normalEquations(equations);
  let active = scale.map((_, index) => index);
  for (;;) {
    const solution = solve(active.map((row) => [...active, scale.length].map((column) => matrix[row]?.[column] ?? 0)));
    const worst = solution.reduce((least, value, index) => (value < (solution[least] ?? 0) ? index : least), 0);
    if ((solution[worst] ?? 0) >= 0 || active.length === 1) {
      const coefficients = scale.map(() => 0);
      for (const [place, index] of active.entries())
        coefficients[index] = Math.max(0, solution[place] ?? 0) / (scale[index] ?? 1);
      return coefficients;
    }
    active = active.filter((_, place) => place !== worst);
  }
}

/** One row for each term, the value last; scaled so that terms of different size are treated alike. */
function normalEquations(equations: readonly Weighted[]): { matrix: number[][]; scale: number[] } {
  const size = equations[0]?.terms.length ?? 0;
  const scale = Array.from({ length: size }, (_, index) =>
    equations.reduce((most, { terms, weight }) => Math.max(most, (terms[index] ?? 0) * weight), 1e-100),
  );
  const matrix = scale.map(() => new Array<number>(size + 1).fill(0));
  for (const { terms, value, weight } of equations) {
    const scaled = [...scale.map((of, index) => ((terms[index] ?? 0) * weight) / of), value * weight];
    for (const [index, row] of matrix.entries())
      for (let column = 0; column <= size; column++)
        row[column] = (row[column] ?? 0) + (scaled[index] ?? 0) * (scaled[column] ?? 0);
  }
  // Terms that add nothing to the others get 0.
  for (const [index, row] of matrix.entries()) row[index] = (row[index] ?? 0) + 1e-12 * equations.length;
  return { matrix, scale };
}

/** By Gauss and Jordan. */
function solve(matrix: number[][]): number[] {
  const size = matrix.length;
  for (const [pivot, row] of matrix.entries()) {
    const head = row[pivot] ?? 1;
    for (let column = pivot; column <= size; column++) row[column] = (row[column] ?? 0) / head;
    for (const other of matrix) {
      const factor = other === row ? 0 : (other[pivot] ?? 0);
      for (let column = pivot; column <= size; column++)
        other[column] = (other[column] ?? 0) - factor * (row[column] ?? 0);
    }
  }
  return matrix.map((row) => row[size] ?? 0);
}
