// Every published result, in full and in short: results.json, and docs/proof.md from it.
//
//     npm run reproduce                    all rows
//     npm run reproduce -- --only S1,S8    some rows; the page keeps what it had of the others
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import * as headgate from 'headgate';
import * as simulator from 'headgate/simulator';
import { page } from './page.mjs';
import { rows } from './rows/index.mjs';

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const only = values.only?.split(',');
const scenarios = new URL('../../examples/scenarios/', import.meta.url);
const readFile = (name) => readFileSync(new URL(name, scenarios), 'utf8');
const resultsFile = new URL('results.json', import.meta.url);
const results = JSON.parse(readFileSync(resultsFile, 'utf8'));

for (const row of rows) {
  if (only !== undefined && !only.includes(row.id)) continue;
  const startedAtMs = performance.now();
  const full = row.run({ headgate, simulator, readFile, isShort: false });
  const { ours, control } = row.run({ headgate, simulator, readFile, isShort: true });
  results[row.id] = { full, short: { ours, control } };
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(`${full.holds ? 'holds  ' : 'FAILS  '} ${row.id}  ${full.ours}  (${seconds} s)`);
  if (!full.holds) process.exitCode = 1;
}
const inOrder = Object.fromEntries(rows.map(({ id }) => [id, results[id]]));
writeFileSync(resultsFile, `${JSON.stringify(inOrder, undefined, 2)}\n`);
writeFileSync(new URL('../../docs/proof.md', import.meta.url), page(rows, results));
