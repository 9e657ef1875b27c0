/** The scenarios of a command: read from files, with the traffic of a trace where one is given. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Scenario, TraceRow } from '../../../simulator/index.js';
import { leftOut, loadScenario, readTrace, scenarioFromTrace } from '../../../simulator/index.js';
import type { SimulateArguments } from '../arguments.js';
import { readSource } from '../read-source.js';

export interface NamedScenario extends Scenario {
  readonly name: string;
  /** Reads what the scenario names, beside its file. */
  readonly readFile: (path: string) => string;
  /** The traffic, where it was recorded. */
  readonly recorded: readonly TraceRow[];
  /** True when the servers are fitted to it. */
  readonly isFitted: boolean;
}

/** @throws FlowConfigError, and what reading files throws */
export function readScenario(file: string | undefined, given: SimulateArguments): NamedScenario {
  const { from, skipBadLines, columns } = given;
  const readFile = (path: string): string =>
    readFileSync(resolve(file === undefined || file === '-' ? '.' : dirname(file), path), 'utf8');
  const trace = from === undefined ? undefined : readTrace(readSource(from), { skipBadLines, columns });
  const recorded = trace?.rows ?? [];
  const isFitted = file === undefined;
  const notes = trace === undefined ? [] : leftOut(trace);
  const warnings = isFitted ? notes : notes.map((note) => `${from}: ${note}`);
  if (isFitted && recorded.every(({ ttftMs }) => ttftMs === undefined)) warnings.push(asSlots);
  const scenario = isFitted
    ? loadScenario(scenarioFromTrace(recorded, { name: from }))
    : loadScenario(readSource(file), { readFile, skipBadLines, rows: trace?.rows });
  const name = scenario.options.name ?? file ?? 'trace';
  return { ...scenario, warnings: [...warnings, ...scenario.warnings], name, readFile, recorded, isFitted };
}

const asSlots =
  'no request of the log has a time to its first token: the servers are `slots`, and each request takes as long as it took, whatever else runs';
