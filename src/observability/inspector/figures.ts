/** Figures as frames have them: short, and null where there is none. */

export function rounded(figure: number, digits = 1): number {
  return Number(figure.toFixed(digits));
}

export function orNull(figure: number | undefined): number | null {
  return figure === undefined ? null : rounded(figure);
}

/** Null: unlimited. */
export function limitOrNull(limit: number): number | null {
  return limit === Number.POSITIVE_INFINITY ? null : limit;
}
