/** The scenarios of a command: read from files, with the traffic of a trace where one is given. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import {
  loadScenario,
  type ReadTrace,
  readTrace,
  type Scenario,
  scenarioFromTrace,
  type TraceRow,
} from '../../../simulator/index.js';
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
export function readScenario(
  file: string | undefined,
  { from, skipBadLines, columns }: SimulateArguments,
): NamedScenario {
  const readFile = (path: string): string =>
    readFileSync(resolve(file === undefined || file === '-' ? '.' : dirname(file), path), 'utf8');
  const trace = from === undefined ? undefined : readTrace(readSource(from), { skipBadLines, columns });
  const recorded = trace?.rows ?? [];
  const isFitted = file === undefined;
  const notes = trace === undefined ? [] : [...skippedOf(trace), ...unansweredOf(trace)];
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

function unansweredOf({ unanswered, rows }: ReadTrace): string[] {
  if (unanswered === 0) return [];
  return [`${unanswered} of ${unanswered + rows.length} requests got no answer and are left out`];
}

/** One line for all that was left out of a trace. */
function skippedOf({ skippedLines, warnings }: ReadTrace): string[] {
  if (warnings.length === 0) return [];
  const count = skippedLines === 1 ? '1 line was' : `${skippedLines} lines were`;
  const further = warnings.length > 1 ? `; and ${warnings.length - 1} more` : '';
  return [`${count} left out. Its faults: ${warnings[0]}${further}`];
}
