// One scenario as a table for the terminal.

/** Three digits are what the noise leaves. */
export function format(value) {
  if (value === 0) return '0';
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
  return Number(value.toPrecision(3)).toString();
}

/** The median, and where it varied the least and the greatest value. */
export function spread(summary) {
  if (summary === undefined) return '';
  const { median, min, max } = summary;
  return min === max ? format(median) : `${format(median)} (${format(min)}…${format(max)})`;
}

/** Figures that some subject of the scenario has, `jobs` aside. */
export function figuresOf(subjects) {
  return [...new Set(Object.values(subjects).flatMap((subject) => Object.keys(subject)))].filter(
    (name) => !['jobs', 'failed'].includes(name),
  );
}

export function scenarioTable({ name, title, rounds, subjects }) {
  const columns = figuresOf(subjects);
  const rows = Object.entries(subjects).map(([subject, figures]) => [
    subject,
    ...(figures.failed === undefined ? columns.map((column) => spread(figures[column])) : [figures.failed]),
  ]);
  const lines = [['', ...columns], ...rows];
  const widths = lines[0].map((_, column) =>
    Math.max(...lines.map((line) => (line.length > column ? line[column].length : 0))),
  );
  const text = lines.map((line) =>
    line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  '),
  );
  return `\n${name} · ${title.replace(`${name}: `, '')} · ${rounds} rounds\n${text.join('\n')}`;
}

/** The targets that this run can judge. */
export function targetLines(targets) {
  const lines = targets
    .filter(({ actual }) => actual !== undefined)
    .map(({ what, unit, atMost, actual }) => {
      const verdict = actual <= atMost ? 'reached' : 'MISSED ';
      return `${verdict}  ${format(actual)}${unit} of ${atMost}${unit}  ${what}`;
    });
  return `\n${lines.join('\n')}`;
}
