/** The table of docs/scale-out.md: what each fault costs, as stated and as measured. */
import { readFileSync, writeFileSync } from 'node:fs';
import { type Scenario, scenarios } from './scenarios.js';
import { slowness } from './spans.js';

export interface BoundsRow {
  readonly scenario: Scenario;
  readonly runs: number;
  /** The most requests above the limit in any run, or units above a quota. */
  readonly over: number;
  /** The longest time from the end of the fault until all seats were in use again. */
  readonly backMs: number;
}

const head = '|fault|over, at most|back within|runs|over|back, ms|\n|---|---|---|---|---|---|';
const marks = [
  '<!-- bounds: npm run torture:redis -- --write docs/scale-out.md -->\n',
  '\n<!-- end of bounds -->',
] as const;

/** The cells that the sources decide. */
export function statedCells({ name, over, back }: Scenario): readonly string[] {
  return [name, over.words, back.words];
}

export function boundsTable(rows: readonly BoundsRow[]): string {
  const lines = rows.map(({ scenario, runs, over, backMs }) => {
    return `|${[...statedCells(scenario), runs, over, Math.round(backMs / slowness)].join('|')}|`;
  });
  return [head, ...lines].join('\n');
}

/** The rows of a page, each as its cells. @throws when there is no table between the marks */
export function readBounds(page: string): readonly (readonly string[])[] {
  const [, table] = page.split(marks[0]);
  const [lines] = table?.split(marks[1]) ?? [];
  if (!lines?.startsWith(`${head}\n`)) throw new Error(`no table between ${marks.join(' and ')}`);
  return lines
    .split('\n')
    .slice(2)
    .map((line) => line.slice(1, -1).split('|'));
}

export function writeBounds(path: string, rows: readonly BoundsRow[]): void {
  if (rows.length < scenarios.length) throw new Error('--write: expected runs of every fault; give more seeds');
  const page = readFileSync(path, 'utf8');
  const [before, rest] = page.split(marks[0]);
  const after = rest?.split(marks[1])[1];
  if (after === undefined) throw new Error(`${path}: no marks ${marks.join(' and ')}`);
  writeFileSync(path, `${before}${marks[0]}${boundsTable(rows)}${marks[1]}${after}`);
}
