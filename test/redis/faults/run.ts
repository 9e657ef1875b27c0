/** Runs the scenarios for so many seeds, or so many minutes, and prints a row for each. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { engineKinds } from '../support/engines.js';
import { Observer } from './observer.js';
import { control, type RunResult, runScenario, type Scenario, scenarios } from './scenarios.js';

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seeds: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
});
const endsAtMs = values.minutes === undefined ? Number.POSITIVE_INFINITY : performance.now() + Number(values.minutes) * 60_000;
const seeds = values.minutes === undefined ? Number(values.seeds) : Number.POSITIVE_INFINITY;
const first = Number(values.seed);

const rows = new Map<Scenario, RunResult[]>();
const faults: string[] = [];
const observer = new Observer(fileURLToPath(new URL('replica.mjs', import.meta.url)));

/** Every eleventh run is the control. */
const played = [...scenarios, control];

if (engineKinds.length === 0) process.exit(0);
for (let count = 0; count < seeds && performance.now() < endsAtMs; count++) {
  const seed = first + count;
  const scenario = played[count % played.length] as Scenario;
  const kind = engineKinds[Math.floor(count / played.length) % engineKinds.length]!;
  const result = await runScenario(scenario, seed, kind, observer);
  rows.set(scenario, [...(rows.get(scenario) ?? []), result]);
  const { mostOver, taken, replicas, isStuck, problems } = result;
  console.log(`seed ${seed}, ${kind.name}, ${replicas} replicas, ${scenario.name}: ${taken} requests, ${mostOver} over the limit`);
  if (mostOver > scenario.bound)
    faults.push(`seed ${seed}: ${mostOver} over the limit, at most ${scenario.bound} are allowed: ${scenario.name}`);
  if (isStuck) faults.push(`seed ${seed}: nothing was dispatched after the fault: ${scenario.name}; ${problems.join('; ')}`);
}
observer.close();

console.log('\n| fault | runs | requests | most over the limit | bound |\n|---|---|---|---|---|');
for (const [{ name, bound, isControl }, results] of rows) {
  const sum = results.reduce((total, { taken }) => total + taken, 0);
  console.log(
    `| ${name} | ${results.length} | ${sum} | ${Math.max(...results.map(({ mostOver }) => mostOver))} | ${isControl ? 'none' : bound} |`,
  );
}
const controls = rows.get(control) ?? [];
if (controls.length >= 3 && controls.every(({ mostOver }) => mostOver === 0))
  faults.push('the control never exceeded the limit: the test shows nothing');
for (const fault of faults) console.error(`FAILED: ${fault}`);
process.exit(faults.length > 0 ? 1 : 0);
