/** The scenarios of a command: read from files, with the traffic of a trace where one is given. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { loadScenario, type ReadTrace, readTrace, type Scenario, scenarioFromTrace } from '../../../simulator/index.js';
import type { SimulateArguments } from '../arguments.js';
import { readSource } from '../read-source.js';

export interface NamedScenario extends Scenario {
  readonly name: string;
  /** Reads what the scenario names, beside its file. */
  readonly readFile: (path: string) => string;
}

/** @throws FlowConfigError, and what reading files throws */
export function readScenario(file: string | undefined, { from, skipBadLines }: SimulateArguments): NamedScenario {
  const readFile = (path: string): string =>
    readFileSync(resolve(file === undefined || file === '-' ? '.' : dirname(file), path), 'utf8');
  const trace = from === undefined ? undefined : readTrace(readSource(from), { skipBadLines });
  const warnings = trace === undefined || from === undefined ? [] : skippedOf(from, trace);
  if (file === undefined) {
    const scenario = loadScenario(scenarioFromTrace(trace?.rows ?? [], { name: from }));
    return { ...scenario, warnings: [...warnings, ...scenario.warnings], name: from ?? 'trace', readFile };
  }
  const scenario = loadScenario(readSource(file), { readFile, skipBadLines, rows: trace?.rows });
  return { ...scenario, warnings: [...warnings, ...scenario.warnings], name: scenario.options.name ?? file, readFile };
}

/** One line for all that was left out of a trace. */
function skippedOf(name: string, { skippedLines, warnings }: ReadTrace): string[] {
  if (warnings.length === 0) return [];
  const count = skippedLines === 1 ? '1 line was' : `${skippedLines} lines were`;
  const further = warnings.length > 1 ? `; and ${warnings.length - 1} more` : '';
  return [`${name}: ${count} left out. Its faults: ${warnings[0]}${further}`];
}
