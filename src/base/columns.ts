/** Tables for terminals: the cells of the first `left` columns begin under each other, those of the others end so. */
export function columns(rows: readonly (readonly string[])[], left = 1): string[] {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => (row[at] ?? '').length)));
  const padded = (cell: string, at: number): string =>
    at < left ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0);
  return rows.map((row) => row.map(padded).join('  ').trimEnd());
}
