// Writes what mutation testing found into the table of docs/contributing/mutation.md: one row for each file, from the reports named (the
// last one, test-results/mutation.json, when none is). Rows of files that no report has stay as they are; files never measured say so.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import stryker from '../stryker.config.mjs';

const page = 'docs/contributing/mutation.md';
const [begin, end] = ['<!-- written by scripts/mutation-table.mjs -->', '<!-- end of the table -->'];
const reports = process.argv.slice(2);
if (reports.length === 0) reports.push(stryker.jsonReporter.fileName);

const text = readFileSync(page, 'utf8');
const [head, table, tail] = [
  text.slice(0, text.indexOf(begin)),
  text.slice(text.indexOf(begin), text.indexOf(end)),
  text.slice(text.indexOf(end)),
];
const rows = new Map(Array.from(table.matchAll(/^\| `(.+?)` .*$/gm), ([row, file]) => [file, row]));

for (const path of reports.sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs)) {
  const date = statSync(path).mtime.toISOString().slice(0, 10);
  for (const [file, { mutants }] of Object.entries(JSON.parse(readFileSync(path, 'utf8')).files)) {
    const count = (...statuses) => mutants.filter(({ status }) => statuses.includes(status)).length;
    const [noticed, left] = [count('Killed', 'Timeout'), count('Survived', 'NoCoverage')];
    if (noticed + left === 0) rows.set(file, `| \`${file}\` | nothing to change | | | ${date} |`);
    else rows.set(file, `| \`${file}\` | ${((100 * noticed) / (noticed + left)).toFixed(1)} | ${noticed + left} | ${left} | ${date} |`);
  }
}

const folders = stryker.mutate.map((pattern) => pattern.replace('/**/*.ts', ''));
const files = folders.flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name}`));
const sources = files.filter((file) => file.endsWith('.ts')).sort();
const body = sources.map((file) => rows.get(file) ?? `| \`${file}\` | not measured | | | |`);
writeFileSync(
  page,
  `${head}${begin}\n\n| file | score, % | mutants | left | measured |\n|---|---|---|---|---|\n${body.join('\n')}\n\n${tail}`,
);
