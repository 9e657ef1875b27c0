/** The lists of `docs/conformance.md`, made from `deviations.json` and `not-compared.ts`. */
import { type Deviation, deviations } from './deviations.js';
import { notCompared } from './not-compared.js';

const begin = '<!-- made by npx vitest run test/conformance/page.test.ts -u -->';
const end = '<!-- end -->';

/** The page with its lists made anew; what stands around them is left alone. */
export function withLists(page: string): string {
  const start = page.indexOf(begin);
  const stop = page.indexOf(end);
  if (start < 0 || stop < start) throw new Error(`the page must hold ${begin} and ${end}`);
  return `${page.slice(0, start)}${begin}\n\n${lists()}\n\n${page.slice(stop)}`;
}

function lists(): string {
  return [
    '## Deviations',
    table(['vectors', 'where', 'headgate'], deviations.map(deviationRow)),
    '## Not compared',
    'Keys of vectors that play, which no runner looks at because there is nothing here to compare them with.',
    table(['vectors', 'key', 'why'], notComparedRows()),
  ].join('\n\n');
}

function deviationRow({ kind, where = {}, reason, instead = {} }: Deviation): string[] {
  const conditions = Object.entries(where).map(([path, matcher]) => `${path}: ${JSON.stringify(matcher)}`);
  const happens = Object.entries(instead).map(([id, expected]) => ` ${id} instead: ${code(JSON.stringify(expected))}`);
  return [code(kind), conditions.map(code).join(', '), `${reason}${happens.join('')}`];
}

function notComparedRows(): string[][] {
  return Object.entries(notCompared).flatMap(([kind, keys]) =>
    Object.entries(keys).map(([key, reason]) => [code(kind), code(key), reason]),
  );
}

function code(text: string): string {
  return `\`${text}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}
