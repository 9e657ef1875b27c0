// Every published result, in full, and docs/proof.md from it.
//
//     npm run reproduce                    all rows; writes docs/proof.md
//     npm run reproduce -- --only S1,S8    some rows; writes nothing
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import * as headgate from 'headgate';
import * as simulator from 'headgate/simulator';
import { page } from './page.mjs';
import { rows } from './rows/index.mjs';

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const only = values.only?.split(',');
const scenarios = new URL('../../examples/scenarios/', import.meta.url);
const kit = { headgate, simulator, isShort: false, readFile: (name) => readFileSync(new URL(name, scenarios), 'utf8') };

const results = rows
  .filter(({ id }) => only === undefined || only.includes(id))
  .map((row) => {
    const startedAtMs = performance.now();
    const outcome = row.run(kit);
    console.log(
      `${outcome.holds ? 'holds  ' : 'FAILS  '} ${row.id}  ${outcome.ours}  (${((performance.now() - startedAtMs) / 1000).toFixed(1)} s)`,
    );
    return { ...row, outcome };
  });
if (only === undefined) writeFileSync(new URL('../../docs/proof.md', import.meta.url), page(results));
if (results.some(({ outcome }) => !outcome.holds)) process.exitCode = 1;
