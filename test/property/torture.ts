/**
 * Random histories without an end: `npm run torture -- --steps 1e7`, `--seconds 60`, `--seed 5`,
 * `--nonsense` for plugins that break their contracts; `--replay FILE` or `--replay SEED` plays
 * one again. A history that breaks something is made smaller and written down.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Breach, type History, historyOf, play, shrink } from './history.js';
import { pairs } from './pairs.js';
import { reached } from './reached.js';

const { values } = parseArgs({
  options: {
    steps: { type: 'string' },
    seconds: { type: 'string' },
    seed: { type: 'string', default: '1' },
    replay: { type: 'string' },
    nonsense: { type: 'boolean', default: false },
  },
});

// A rejection that nobody handles is a fault like any other.
let stray: unknown;
process.on('unhandledRejection', (reason) => {
  stray ??= reason;
});

function describe({ seed, hasNonsense, isTangled, steps }: History, { atStep, faults }: Breach): string {
  const kinds = steps.map(({ kind, salt }, index) => `${index === atStep ? '>' : ' '} ${index} ${kind} ${salt}`);
  return [
    `${isTangled ? 'tangled world' : 'world'} ${seed}${hasNonsense ? ' with nonsense' : ''}`,
    ...kinds,
    ...faults.map((fault) => `  ${fault}`),
  ].join('\n');
}

async function fail(seed: number, history: History, breach: Breach): Promise<never> {
  const smallest = await shrink(history, breach);
  const found = (await play(smallest)) ?? breach;
  mkdirSync('test-results', { recursive: true });
  const file = `test-results/torture-${seed}.json`;
  writeFileSync(file, `${JSON.stringify(smallest, undefined, 1)}\n`);
  console.error(`history ${seed} breaks after ${breach.atStep} steps; made smaller:\n${describe(smallest, found)}`);
  console.error(`\nnpm run torture -- --replay ${file}`);
  process.exit(1);
}

async function replay(name: string): Promise<void> {
  const history: History = /^\d+$/.test(name)
    ? historyOf(Number(name), values.nonsense)
    : JSON.parse(readFileSync(name, 'utf8'));
  const breach = await play(history);
  console.info(breach === undefined ? `${history.steps.length} steps, nothing broke` : describe(history, breach));
  process.exitCode = breach === undefined ? 0 : 1;
}

async function torture(): Promise<void> {
  const mostSteps =
    values.steps === undefined && values.seconds === undefined ? 1e5 : Number(values.steps ?? Number.POSITIVE_INFINITY);
  const untilMs = performance.now() + Number(values.seconds ?? Number.POSITIVE_INFINITY) * 1000;
  const startedAtMs = performance.now();
  const first = Number(values.seed);
  let seed = first;
  let steps = 0;
  for (; steps < mostSteps && performance.now() < untilMs; seed++) {
    const history = historyOf(seed, values.nonsense);
    const breach = await play(history);
    if (breach !== undefined) await fail(seed, history, breach);
    if (stray !== undefined)
      await fail(seed, history, { atStep: history.steps.length, faults: [`unhandled: ${String(stray)}`] });
    steps += history.steps.length;
    // Promises alone would never let the process notice a rejection.
    if (seed % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const seconds = (performance.now() - startedAtMs) / 1000;
  console.info(
    `${steps} steps in ${seed - first} histories from seed ${first}: nothing broke (${Math.round(steps / seconds)} steps/s)`,
  );
  // Fewer steps may miss what is rare.
  if (steps < 50_000) return;
  reached.tell();
  if (pairs.never.length === 0) return;
  console.error(`of ${pairs.all} pairs of optional parts never in force together: ${pairs.never.join('; ')}`);
  process.exitCode = 1;
}

await (values.replay === undefined ? torture() : replay(values.replay));
