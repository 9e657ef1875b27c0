/**
 * Runs the scenarios for so many seeds, or so many minutes, several side by side, and prints a row for each. With
 * `--write` the rows go into docs/scale-out.md.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { storeKinds } from '../support/stores.js';
import { type BoundsRow, boundsTable, writeBounds } from './bounds.js';
import { Observer, reached } from './observer.js';
import { type RunResult, runScenario } from './run-scenario.js';
import { control, type Scenario, scenarios } from './scenarios.js';
import { busyMs, slowness } from './spans.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seeds: { type: 'string', default: '54' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '3' },
    fault: { type: 'string', multiple: true },
    slow: { type: 'string' },
    busy: { type: 'string' },
    write: { type: 'string' },
  },
});

/** Those whose names hold one of the words that are asked for; else all. */
const named = values.fault ?? [''];
const played = [...scenarios, control].filter(({ name }) => named.some((word) => name.includes(word)));
if (played.length === 0) {
  const names = [...scenarios, control].map(({ name }) => `  ${name}`).join('\n');
  console.error(`--fault: expected a part of one of these names; got ${named.join(', ')}\n${names}`);
  process.exit(2);
}

/** A run that takes longer waits for what never comes. */
const longestRunMs = 90_000 * slowness;
const endsAtMs =
  values.minutes === undefined ? Number.POSITIVE_INFINITY : performance.now() + Number(values.minutes) * 60_000;
const seeds = values.minutes === undefined ? Number(values.seeds) : Number.POSITIVE_INFINITY;
const first = Number(values.seed);
const results = new Map<Scenario, RunResult[]>();
const faults: string[] = [];
/** Runs that were not back in time. A busy machine may be the reason, so each is played again, alone. */
const late: number[] = [];
let count = 0;

/** Runs mostly wait: a lane plays one after the other, with replicas and stores of its own. */
async function lane(): Promise<void> {
  const observer = new Observer(fileURLToPath(new URL('replica.mjs', import.meta.url)));
  while (count < seeds && performance.now() < endsAtMs) await play(count++, observer);
  observer.close();
}

async function play(index: number, observer: Observer, isAgain = false): Promise<void> {
  const seed = first + index;
  const scenario = played[index % played.length] as Scenario;
  const kind = storeKinds[Math.floor(index / played.length) % storeKinds.length]!;
  const overdue = setTimeout(() => {
    throw new Error(`seed ${seed}, ${kind.name}, ${scenario.name}: no end; ${observer.waitsFor}`);
  }, longestRunMs);
  const result = await runScenario(scenario, seed, kind, observer);
  clearTimeout(overdue);
  results.set(scenario, [...(results.get(scenario) ?? []), result]);
  const { counts, replicas, backAfterMs, usable, problems } = result;
  const figures = [...counts].map(([counter, { taken, mostOver }]) => `${counter} ${taken}, ${mostOver} over`);
  const back = `back after ${Math.round(backAfterMs)} ms`;
  console.log(`seed ${seed}, ${kind.name}, ${replicas} replicas, ${scenario.name}: ${figures.join('; ')}; ${back}`);
  for (const [counter, { mostOver, bound, taken }] of counts) {
    if (mostOver > bound)
      faults.push(`seed ${seed}: ${mostOver} over the limit of ${counter}, at most ${bound} allowed: ${scenario.name}`);
    if (taken === 0) faults.push(`seed ${seed}: nothing was taken of ${counter}: ${scenario.name}`);
  }
  if (backAfterMs > scenario.back.ms + busyMs && !isAgain) {
    late.push(index);
    results.get(scenario)?.pop();
    console.log(
      `seed ${seed}: not back in time, will be played again alone; ${usable.join(', ')}; ${problems.join('; ')}`,
    );
  } else if (backAfterMs > scenario.back.ms + busyMs) {
    const stated = `${scenario.back.words} (${scenario.back.ms} ms); usable: ${usable.join(', ')}`;
    faults.push(`seed ${seed}: ${back}, stated is ${stated}: ${scenario.name}; ${problems.join('; ')}`);
  }
}

if (storeKinds.length === 0) process.exit(0);
await Promise.all(Array.from({ length: Number(values.lanes) }, lane));
if (late.length > 0) {
  const observer = new Observer(fileURLToPath(new URL('replica.mjs', import.meta.url)));
  for (const index of late) await play(index, observer, true);
  observer.close();
}

const rows = scenarios.flatMap((scenario): BoundsRow[] => {
  const runs = results.get(scenario);
  if (runs === undefined) return [];
  const counter = scenario.quota === undefined ? 'requests' : 'quota';
  const over = Math.max(...runs.map(({ counts }) => counts.get(counter)!.mostOver));
  return [{ scenario, runs: runs.length, over, backMs: Math.max(...runs.map(({ backAfterMs }) => backAfterMs)) }];
});
console.log(`\n${boundsTable(rows)}`);
const controls = results.get(control) ?? [];
if (controls.length >= 3 && controls.every(({ counts }) => counts.get('requests')!.mostOver === 0))
  faults.push('the control never exceeded the limit: the test shows nothing');
console.log(`\nreached, in so many lives of replicas:\n${reached.report}`);
if (count >= scenarios.length && values.fault === undefined)
  faults.push(...reached.never.map((state) => `never reached: ${state}`));
for (const fault of faults) console.error(`FAILED: ${fault}`);
if (faults.length === 0 && values.write !== undefined) writeBounds(values.write, rows);
process.exit(faults.length > 0 ? 1 : 0);
