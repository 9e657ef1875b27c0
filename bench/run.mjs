// Benchmarks: every subject through every scenario it can do, in interleaved rounds, each measurement in a process of
// its own.
//
//     npm run bench -- --only burst,keyed100k --rounds 3 --subjects headgate,permit,denque
//     npm run bench -- --quick            one round with a tenth of the requests: does it still run?
//     npm run bench -- --write            all of it, into bench/results.json and docs/benchmarks.md
//     npm run bench -- --render           docs/benchmarks.md again from bench/results.json
//     npm run bench -- --list             what there is
//     npm run bench -- --only simulator   the speed of headgate/simulator, which has no peers
import { writeFileSync } from 'node:fs';
import { readArguments } from './lib/arguments.mjs';
import { writePage } from './lib/page.mjs';
import { loadSubjects, makePlan } from './lib/plan.mjs';
import { summarizeScenario } from './lib/ratios.mjs';
import { mergeResults, readResults } from './lib/results-file.mjs';
import { measure } from './lib/spawn-child.mjs';
import { scenarioTable, targetLines } from './lib/tables.mjs';
import { judgeTargets } from './lib/targets.mjs';

/** On one line, and only where somebody watches. */
function showProgress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** All rounds of one scenario; the order turns from round to round, so that nobody is always first. */
async function runScenario({ scenario, subjects }, { rounds, scale }) {
  const taken = [];
  const failed = new Set();
  for (let round = 0; round < rounds; round++) {
    const figures = {};
    const order = subjects.map((_, index) => subjects[(index + round) % subjects.length]);
    for (const subject of order.filter((name) => !failed.has(name))) {
      showProgress(`${scenario.name} ${round + 1}/${rounds} ${subject}`);
      figures[subject] = await measure(scenario.name, subject, scale);
      if (figures[subject].failed !== undefined) failed.add(subject);
    }
    taken.push(figures);
  }
  showProgress('');
  return summarizeScenario(scenario, subjects, taken);
}

/** The simulator is measured in this process, and is none of the scenarios. */
async function runSimulator({ quick }) {
  const { runSimulatorBench } = await import('./simulator.mjs');
  runSimulatorBench({ quick });
}

async function run(options) {
  if (options.only?.includes('simulator')) await runSimulator(options);
  const only = options.only?.filter((name) => name !== 'simulator');
  if (only?.length === 0) return;
  const plan = await makePlan({ ...options, only });
  if (options.list) {
    for (const { scenario, subjects } of plan) console.log(`${scenario.name.padEnd(28)}${subjects.join(' ')}`);
    return;
  }
  const results = [];
  for (const entry of plan) {
    const result = await runScenario(entry, options);
    results.push(result);
    console.log(scenarioTable(result));
    // At once, so that a long run that is interrupted is not lost.
    if (options.write) mergeResults('scenarios', [result]);
  }
  console.log(targetLines(judgeTargets(results)));
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
  const wrong = results.flatMap(({ name, subjects }) => (subjects.headgate?.failed === undefined ? [] : [name]));
  if (wrong.length > 0) throw new Error(`headgate failed in ${wrong.join(', ')}`);
}

try {
  const options = readArguments();
  if (!options.render) await run(options);
  if (options.write || options.render) writePage(readResults(), await loadSubjects());
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
