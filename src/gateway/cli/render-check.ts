/** The result of a check for people, in 80 columns. */
import type { CheckResult } from './check-source.js';

const columns = 80;

export function renderCheck(file: string, { kind, faults, warnings, effective }: CheckResult): string {
  const lines: string[] = [];
  if (faults.length > 0) {
    lines.push(...wrap(`${file}: ${kind} with ${counted(faults.length, 'fault')}`, ''), '');
    for (const { path, expected, got } of faults) {
      lines.push(
        ...wrap(`- ${path || 'the file'}`, '  '),
        ...wrap(`  expected ${expected}`, '    '),
        ...wrap(`  got ${got}`, '    '),
      );
    }
    return `${lines.join('\n')}\n`;
  }
  lines.push(...wrap(`${file}: ${kind}, no faults, ${counted(warnings.length, 'warning')}`, ''));
  if (warnings.length > 0) lines.push('', 'Warnings', ...warnings.flatMap((warning) => wrap(`- ${warning}`, '  ')));
  for (const { section, entries } of effective) {
    const width = Math.min(Math.max(0, ...entries.map(([name]) => name.length)), 24);
    lines.push(
      '',
      section,
      ...entries.flatMap(([name, value]) => wrap(`  ${name.padEnd(width)}  ${value}`, ' '.repeat(width + 4))),
    );
  }
  return `${lines.join('\n')}\n`;
}

function counted(count: number, what: string): string {
  return `${count === 0 ? 'no' : count} ${what}${count === 1 ? '' : 's'}`;
}

/** Breaks at blanks; further lines begin with `indent`. A word longer than a line stands alone. */
function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > columns) {
    const limit = rest.lastIndexOf(' ', columns);
    const at = limit > indent.length + 1 ? limit : rest.indexOf(' ', columns);
    if (at < 0) break;
    lines.push(rest.slice(0, at).trimEnd());
    rest = indent + rest.slice(at + 1);
  }
  return [...lines, rest];
}
