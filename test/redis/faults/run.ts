/** Runs the scenarios for so many seeds, or so many minutes, several side by side, and prints a row for each. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { storeKinds } from '../support/stores.js';
import { counters } from './messages.js';
import { Observer } from './observer.js';
import { control, type RunResult, runScenario, type Scenario, scenarios } from './scenarios.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seeds: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '3' },
  },
});
const endsAtMs =
  values.minutes === undefined ? Number.POSITIVE_INFINITY : performance.now() + Number(values.minutes) * 60_000;
const seeds = values.minutes === undefined ? Number(values.seeds) : Number.POSITIVE_INFINITY;
const first = Number(values.seed);

const rows = new Map<Scenario, RunResult[]>();
const faults: string[] = [];

/** Every eleventh run is the control. */
const played = [...scenarios, control];
let count = 0;

/** Runs mostly wait: a lane plays one after the other, with replicas and stores of its own. */
async function lane(): Promise<void> {
  const observer = new Observer(fileURLToPath(new URL('replica.mjs', import.meta.url)));
  while (count < seeds && performance.now() < endsAtMs) await play(count++, observer);
  observer.close();
}

async function play(index: number, observer: Observer): Promise<void> {
  const seed = first + index;
  const scenario = played[index % played.length] as Scenario;
  const kind = storeKinds[Math.floor(index / played.length) % storeKinds.length]!;
  const result = await runScenario(scenario, seed, kind, observer);
  rows.set(scenario, [...(rows.get(scenario) ?? []), result]);
  const { counts, replicas, isStuck, problems } = result;
  const figures = [...counts].map(([counter, { taken, mostOver }]) => `${counter} ${taken}, ${mostOver} over`);
  console.log(`seed ${seed}, ${kind.name}, ${replicas} replicas, ${scenario.name}: ${figures.join('; ')}`);
  for (const [counter, { mostOver, bound }] of counts) {
    if (mostOver > bound)
      faults.push(
        `seed ${seed}: ${mostOver} over the limit of ${counter}, at most ${bound} are allowed: ${scenario.name}`,
      );
  }
  if (isStuck)
    faults.push(`seed ${seed}: nothing was dispatched after the fault: ${scenario.name}; ${problems.join('; ')}`);
}

if (storeKinds.length === 0) process.exit(0);
await Promise.all(Array.from({ length: Number(values.lanes) }, lane));

console.log(
  `\n| fault | runs |${counters.map((counter) => ` ${counter} | most over | bound |`).join('')}\n|---|---|${'---|---|---|'.repeat(counters.length)}`,
);
for (const scenario of played) {
  const results = rows.get(scenario);
  if (results === undefined) continue;
  const cells = counters.map((counter) => {
    const each = results.map(({ counts }) => counts.get(counter)!);
    const taken = each.reduce((sum, one) => sum + one.taken, 0);
    return `${taken} | ${Math.max(...each.map(({ mostOver }) => mostOver))} | ${Math.max(...each.map(({ bound }) => bound))}`;
  });
  console.log(`| ${scenario.name} | ${results.length} | ${cells.join(' | ')} |`);
}
const controls = rows.get(control) ?? [];
if (controls.length >= 3 && controls.every(({ counts }) => counts.get('requests')!.mostOver === 0))
  faults.push('the control never exceeded the limit: the test shows nothing');
for (const fault of faults) console.error(`FAILED: ${fault}`);
process.exit(faults.length > 0 ? 1 : 0);
