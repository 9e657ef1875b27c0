/** `headgate simulate`: what would this configuration do with that traffic? */
import { writeFileSync } from 'node:fs';
import * as simulator from '../../../simulator/index.js';
import type { SimulateArguments } from '../arguments.js';
import { progressLine } from './progress.js';
import { runFind, runSweep } from './run-search.js';
import { type NamedScenario, readScenario } from './scenario-files.js';

/** Returns the exit status: 1 for a condition that no value meets. @throws FlowConfigError, and what reading throws */
export function runSimulate(given: SimulateArguments): number {
  const files = [given.file, ...given.compare];
  const scenarios = withOwnNames(files.map((file) => ({ file, ...readScenario(file, given) })));
  for (const { name, warnings } of scenarios)
    for (const warning of warnings) process.stderr.write(`${name}: ${warning}\n`);
  const [first] = scenarios as [NamedScenario, ...NamedScenario[]];
  const seeds = Number(given.seeds ?? 1);
  const progress = progressLine(process.stderr);
  if (given.find !== undefined) return runFind(seeded(first, given), given, seeds, progress);
  if (given.sweep.length > 0) return runSweep(seeded(first, given), given, seeds, progress);
  const ran = scenarios.map((scenario, index) => {
    const { name, options, recorded } = seeded(scenario, given);
    const onProgress = (done: number): void => progress.show(name, (index + done) / scenarios.length);
    const results = simulator.simulateSeeds(options, seeds, { onProgress });
    return { name, results, held: results.map((result) => simulator.heldAgainstLog(result, recorded)) };
  });
  progress.clear();
  print(ran, given);
  if (first.isFitted && !given.json) process.stdout.write(`\nServers as fitted: ${fittedServers(first)}\n`);
  const doubt = first.isFitted ? simulator.distrust(ran.flatMap(({ held }) => held)[0] ?? []) : undefined;
  if (doubt !== undefined) process.stderr.write(`${first.name}: ${doubt}\n`);
  return 0;
}

/** Scenarios of one name are told apart by their files. */
function withOwnNames<S extends NamedScenario & { readonly file: string | undefined }>(
  scenarios: readonly S[],
): NamedScenario[] {
  return scenarios.map((scenario) => {
    const isAlone = scenarios.every((other) => other === scenario || other.name !== scenario.name);
    return isAlone ? scenario : { ...scenario, name: scenario.file ?? scenario.name };
  });
}

function seeded(scenario: NamedScenario, { seed }: SimulateArguments): NamedScenario {
  return seed === undefined ? scenario : { ...scenario, options: { ...scenario.options, seed: Number(seed) } };
}

/** In one line, for the section `servers` of a scenario. */
function fittedServers({ source }: NamedScenario): string {
  const servers: Record<string, unknown>[] = Array.isArray(source.servers) ? source.servers : [];
  const figureOf = (value: unknown): string =>
    typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(3) : String(value);
  const flow = servers.map((server) => Object.entries(server).map(([key, value]) => `${key}: ${figureOf(value)}`));
  return `[${flow.map((keys) => `{ ${keys.join(', ')} }`).join(', ')}]`;
}

interface Ran {
  readonly name: string;
  readonly results: readonly simulator.SimulationResult[];
  /** Beside each result: its times and those of the log. */
  readonly held: readonly (readonly simulator.HeldTime[])[];
}

function print(ran: readonly Ran[], { json, html, seeds }: SimulateArguments): void {
  const [only] = ran;
  if (html !== undefined) {
    const first = ran.flatMap(({ name, results }) => results.slice(0, 1).map((result) => ({ ...result, name })));
    writeFileSync(html, simulator.htmlReport(first, ran.map(({ name }) => name).join(' and ')));
    process.stderr.write(`wrote ${html}\n`);
  }
  if (json) {
    const all = ran.flatMap(({ results, held }) =>
      results.map((result, index) => ({ ...result, ...(held[index]?.length && { heldAgainstLog: held[index] }) })),
    );
    process.stdout.write(`${JSON.stringify(all)}\n`);
  } else if (ran.length === 1 && seeds === undefined)
    process.stdout.write(
      `${simulator.resultTable(only?.results[0] as simulator.SimulationResult)}${simulator.heldTable(only?.held[0] ?? [])}`,
    );
  else process.stdout.write(simulator.comparisonTable(ran));
}
