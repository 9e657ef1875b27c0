// The gateway command beside bare proxies and other gateways, in front of the same model server.
//
//     npm run bench:gateway -- --only headgate,node:http --rounds 3
//     npm run bench:gateway -- --parts costs,overload
//     npm run bench:gateway -- --quick
//     npm run bench:gateway -- --write      into bench/results.json and docs/benchmarks.md
import { readArguments } from '../lib/arguments.mjs';
import { writePage } from '../lib/page.mjs';
import { loadSubjects } from '../lib/plan.mjs';
import { mergeResults } from '../lib/results-file.mjs';
import { measureCosts, printCosts } from './costs.mjs';
import { measureFixedRate, printFixedRate } from './fixed-rate.mjs';
import { measureOverload, printOverload } from './overload.mjs';
import { subjects } from './subjects.mjs';
import { measureWorkloads, printWorkloads } from './workloads.mjs';

/** Each part of the benchmark, and where its figures go in the file of results. */
const parts = {
  costs: { measure: measureCosts, print: printCosts, kind: 'gateways' },
  'fixed-rate': { measure: measureFixedRate, print: printFixedRate, kind: 'fixedRate' },
  workloads: { measure: measureWorkloads, print: printWorkloads, kind: 'workloads' },
  overload: { measure: measureOverload, print: printOverload, kind: 'overload' },
};

function checkNames(what, asked = [], known) {
  const unknown = asked.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`no such ${what}: ${unknown.join(', ')}; there are ${known.join(', ')}`);
}

try {
  const options = readArguments();
  const names = subjects.map(({ name }) => name);
  checkNames('proxy', options.only, names);
  checkNames('part', options.parts, Object.keys(parts));
  const wanted = subjects.filter(({ name }) => options.only?.includes(name) ?? true);
  for (const { name } of wanted.filter(({ isMissing }) => isMissing?.()))
    console.log(`${name} is not installed, and is left out`);
  const chosen = wanted.filter(({ isMissing }) => !isMissing?.());
  for (const [name, { measure, print, kind }] of Object.entries(parts)) {
    if (!(options.parts?.includes(name) ?? true)) continue;
    console.log(`\n${name}`);
    const results = await measure(chosen, options);
    results.forEach(print);
    if (options.write) writePage(mergeResults(kind, results), await loadSubjects());
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
