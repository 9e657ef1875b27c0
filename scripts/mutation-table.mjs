// Writes what mutation testing found into the table of docs/contributing/mutation.md: one row for each file, from the
// reports named (the last one, test-results/mutation.json, when none is). Several reports of one file add up: a mutant
// counts as noticed when tests of one of them noticed it. Reports of what a file was before it changed say nothing.
// Rows of files that no report has stay as they are; files never measured say so, and files of types alone, in which
// there is nothing to change.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { transformSync } from 'esbuild';
import stryker from '../stryker.config.mjs';

const page = 'docs/contributing/mutation.md';
const [begin, end] = ['<!-- written by scripts/mutation-table.mjs -->', '<!-- end of the table -->'];
const named = process.argv.slice(2);
const reports = named.length > 0 ? named : [stryker.jsonReporter.fileName];

/** By file: whether each mutant was noticed, and the day of the last report. */
const found = new Map();
for (const path of reports.sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs)) {
  for (const [file, { source, mutants }] of Object.entries(JSON.parse(readFileSync(path, 'utf8')).files)) {
    if (readFileSync(file, 'utf8') !== source) continue;
    const noticed = found.get(file)?.noticed ?? new Map();
    for (const { status, location, mutatorName, replacement } of mutants) {
      if (!['Killed', 'Timeout', 'Survived', 'NoCoverage'].includes(status)) continue;
      const key = JSON.stringify([location, mutatorName, replacement]);
      noticed.set(key, noticed.get(key) === true || status === 'Killed' || status === 'Timeout');
    }
    found.set(file, { noticed, date: statSync(path).mtime.toISOString().slice(0, 10) });
  }
}

/** True when nothing of the file is left without its types but numbers with a name, which are never changed. */
function hasOnlyTypes(file) {
  const { code } = transformSync(readFileSync(file, 'utf8'), { loader: 'ts', legalComments: 'none' });
  return code.replace(/^export const \w+ = \d+;$/gm, '').trim() === '';
}

function rowWithoutReport(file) {
  if (hasOnlyTypes(file)) return `| \`${file}\` | nothing to change | | | |`;
  return before.get(file) ?? `| \`${file}\` | not measured | | | |`;
}

function rowOf(file, { noticed, date }) {
  const left = [...noticed.values()].filter((isNoticed) => !isNoticed).length;
  if (noticed.size === 0) return `| \`${file}\` | nothing to change | | | ${date} |`;
  const score = (100 * (1 - left / noticed.size)).toFixed(1);
  return `| \`${file}\` | ${score} | ${noticed.size} | ${left} | ${date} |`;
}

const text = readFileSync(page, 'utf8');
const [from, to] = [text.indexOf(begin), text.indexOf(end)];
const before = new Map(Array.from(text.slice(from, to).matchAll(/^\| `(.+?)` .*$/gm), ([row, file]) => [file, row]));
const folders = stryker.mutate.map((pattern) => pattern.replace('/**/*.ts', ''));
const files = folders.flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name}`));
const rows = files
  .filter((file) => file.endsWith('.ts'))
  .sort()
  .map((file) => (found.has(file) ? rowOf(file, found.get(file)) : rowWithoutReport(file)));
const table = ['| file | score, % | mutants | left | measured |', '|---|---|---|---|---|', ...rows].join('\n');
writeFileSync(page, `${text.slice(0, from)}${begin}\n\n${table}\n\n${text.slice(to)}`);
