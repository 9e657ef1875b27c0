/** The mean of figures; NaN of none, and where one of them is. */
export function meanOf(figures: readonly number[]): number {
  return figures.reduce((sum, figure) => sum + figure, 0) / figures.length;
}
