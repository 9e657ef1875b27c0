/** `--find PATH --so-that CONDITION`: the least and the greatest value that will do, and the curve that says why. */
import { FlowConfigError } from '../../../index.js';
import {
  type FoundValues,
  findValue,
  loadScenario,
  parseConditions,
  type SimulationResult,
  scenarioValue,
  simulateSeeds,
  spreadOf,
  withScenarioValue,
  worstMiss,
} from '../../../simulator/index.js';
import type { ProgressLine } from './progress.js';
import type { NamedScenario } from './scenario-files.js';
import { type Cell, table } from './table.js';

interface Range {
  readonly path: string;
  readonly from: number;
  readonly to: number;
  readonly isInteger: boolean;
}

/** A guess of how many values are tried, for the progress line. */
const usualTrials = 20;

export function runFind(
  scenario: NamedScenario,
  find: string,
  soThat: string,
  seeds: number,
  progress: ProgressLine,
  json: boolean,
): number {
  const range = readRange(find);
  const conditions = parseConditions(soThat);
  const figures = new Map<number, Cell[]>();
  const names = new Set<string>();
  // A path that leads nowhere is reported before anything runs.
  withScenarioValue(scenario.source, range.path, range.from);
  const found = findValue({
    ...range,
    miss(value) {
      const { options } = loadScenario(withScenarioValue(scenario.source, range.path, value), {
        readFile: scenario.readFile,
      });
      const trial = figures.size;
      const onProgress = (done: number): void =>
        progress.show(`${range.path} = ${value}`, Math.min(0.99, (trial + done) / usualTrials));
      const results = simulateSeeds({ ...options, seed: scenario.options.seed }, seeds, { onProgress });
      for (const result of results) for (const name of groupsOf(result)) names.add(name);
      figures.set(
        value,
        conditions.map(({ measure }) => ({ measure, value: spreadOf(measure, results).mean })),
      );
      return worstMiss(conditions, results);
    },
  });
  progress.clear();
  if (json) process.stdout.write(`${JSON.stringify({ path: range.path, soThat, ...found })}\n`);
  else
    process.stdout.write(
      told(found, range, soThat, scenarioValue(scenario.source, range.path), conditions, figures, names),
    );
  return found.least === undefined ? 1 : 0;
}

function told(
  { least, greatest, closest, curve }: FoundValues,
  { path, from, to }: Range,
  soThat: string,
  now: unknown,
  conditions: ReturnType<typeof parseConditions>,
  figures: ReadonlyMap<number, readonly Cell[]>,
  names: ReadonlySet<string>,
): string {
  const rows = curve.map(({ value, miss }) => [
    String(value),
    ...(figures.get(value) ?? []),
    miss <= 0 ? 'holds' : 'no',
  ]);
  const lines = table(
    [path, ...conditions.map(({ measure }) => measure.text), soThat.length > 40 ? 'condition' : soThat],
    rows,
  );
  if (least === undefined || greatest === undefined) {
    const missed = `No value from ${from} to ${to} will do.`;
    if (closest.miss === Number.POSITIVE_INFINITY) {
      const known = [...names].join(', ');
      return `${lines}\n${missed} Nothing was measured under at least one of these names; there are ${known}.\n`;
    }
    return `${lines}\n${missed} ${path} = ${closest.value} comes closest: it misses by ${(closest.miss * 100).toFixed(1)} %.\n`;
  }
  const lowest = least === from ? `${least}, where the search began` : String(least);
  const highest = greatest === to ? `${greatest}, where the search ended` : String(greatest);
  return `${lines}\n${soThat} holds for ${path} from ${lowest}, to ${highest}.${now === undefined ? '' : ` The scenario has ${String(now)}.`}\n`;
}

/** The words that may stand in parentheses. */
function groupsOf({ classes, tenants }: SimulationResult): string[] {
  return [...Object.keys(classes), ...Object.keys(tenants)];
}

/**
 * `gate.maxConcurrency`, `gate.maxConcurrency=4..64`, `traffic[0].arrivals.rate=0.5..20.0`; with a point in one end,
 * not integers alone.
 */
function readRange(text: string): Range {
  const [, path = '', from = '1', to = '1024'] = /^([^=]+?)(?:=([\d.]+?)\.\.([\d.]+))?$/.exec(text) ?? [];
  if (path !== '' && Number(from) < Number(to)) {
    return { path, from: Number(from), to: Number(to), isInteger: !from.includes('.') && !to.includes('.') };
  }
  throw new FlowConfigError('--find', [{ path: '', expected: 'PATH or PATH=FROM..TO', got: JSON.stringify(text) }]);
}
