import { formatFigure, type Measure } from '../../../simulator/index.js';

export type Cell = string | { readonly measure: Measure; readonly value: number };

/** All columns to the right, under their heads. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) =>
    row.map((cell) => (typeof cell === 'string' ? cell : formatFigure(cell.value, cell.measure.unit))),
  );
  const widths = head.map((name, index) => Math.max(name.length, ...texts.map((row) => (row[index] ?? '').length)));
  return [head, ...texts]
    .map((row) => `${row.map((cell, index) => cell.padStart(widths[index] ?? 0)).join('  ')}\n`)
    .join('');
}
