/** One line of CSV, as RFC 4180 has it, without line breaks inside of quotes. */
export function splitCsvLine(line: string): string[] {
  const cells: string[] = [];
  const cell = /("(?:[^"]|"")*"|[^",]*)(,|$)/y;
  for (;;) {
    const match = cell.exec(line);
    if (match === null) return [];
    const [, text = '', end] = match;
    cells.push(text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text.trim());
    if (end !== ',') return cells;
  }
}
