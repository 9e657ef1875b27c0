/** `--sweep`: one line for each combination of values. */
import * as simulator from '../../../simulator/index.js';
import type { ProgressLine } from './progress.js';
import type { NamedScenario } from './scenario-files.js';
import { table } from './table.js';

export function runSweep(
  scenario: NamedScenario,
  sweeps: readonly string[],
  seeds: number,
  progress: ProgressLine,
  json: boolean,
): number {
  const axes = sweeps.map(simulator.parseSweepAxis);
  const all = simulator.combinations(axes);
  const points = all.map((values, index) => {
    const source = axes.reduce((file, { path }, axis) => simulator.withScenarioValue(file, path, values[axis]), {
      ...scenario.source,
    });
    const { options } = simulator.loadScenario(source, { readFile: scenario.readFile });
    const seed = scenario.options.seed;
    const onProgress = (done: number): void => progress.show('sweep', (index + done) / all.length);
    return { values, results: simulator.simulateSeeds({ ...options, seed }, seeds, { onProgress }) };
  });
  progress.clear();
  if (json) {
    process.stdout.write(`${JSON.stringify({ paths: axes.map(({ path }) => path), points })}\n`);
    return 0;
  }
  const measures = measuresFor(points.flatMap(({ results }) => results)).map(simulator.parseMeasure);
  const rows = points.map(({ values, results }) => [
    ...values.map(String),
    ...measures.map((measure) => ({ measure, value: simulator.spreadOf(measure, results).mean })),
  ]);
  process.stdout.write(table([...axes.map(({ path }) => path), ...measures.map(({ text }) => text)], rows));
  return 0;
}

/** The measures of a line: first tokens of each class, and what the whole run came to. */
function measuresFor(results: readonly simulator.SimulationResult[]): string[] {
  const classes = [...new Set(results.flatMap((result) => Object.keys(result.classes)))];
  const some = ['goodput', 'dropped', 'tokensPerSecond', 'utilization'];
  return [...classes.slice(0, 4).map((name) => `ttft.p99(${name})`), ...some];
}
