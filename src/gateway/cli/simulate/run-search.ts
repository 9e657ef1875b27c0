/** Several runs: `--sweep`, and `--find PATH --so-that CONDITION`. */
import { columns } from '../../../base/columns.js';
import { FlowConfigError } from '../../../index.js';
import * as simulator from '../../../simulator/index.js';
import type { SimulateArguments } from '../arguments.js';
import type { ProgressLine } from './progress.js';
import type { NamedScenario } from './scenario-files.js';

type Cell = string | { readonly measure: simulator.Measure; readonly value: number };

type Range = Pick<Parameters<typeof simulator.findValue>[0], 'from' | 'to' | 'isInteger'> & { readonly path: string };

interface Trial {
  /** One for each condition, on average over the seeds. */
  readonly figures: readonly Cell[];
  /** What does not hold. */
  readonly fails: readonly string[];
}

type Conditions = readonly simulator.Condition[];

/** `names`: of the classes and tenants that were seen. */
type Search = Readonly<{ range: Range; conditions: Conditions; trials: Map<number, Trial>; names: Set<string> }>;

/** A guess of how many values are tried, for the progress line. */
const usualTrials = 20;

/** The range of values that will do, and the curve that says why. */
export function runFind(scenario: NamedScenario, given: SimulateArguments, seeds: number, line: ProgressLine): number {
  const { find = '', soThat = '', json } = given;
  const range = readRange(find);
  const { path, ...values } = range;
  const conditions = simulator.withServedDefault(simulator.parseConditions(soThat));
  const search: Search = { range, conditions, trials: new Map(), names: new Set() };
  const { trials, names } = search;
  // A path that leads nowhere is reported before anything runs.
  simulator.withScenarioValue(scenario.source, path, range.from);
  const found = simulator.findValue({
    ...values,
    miss(value) {
      const source = simulator.withScenarioValue(scenario.source, path, value);
      const { options } = simulator.loadScenario(source, { readFile: scenario.readFile });
      const trial = trials.size;
      const onProgress = (done: number): void =>
        line.show(`${path} = ${value}`, Math.min(0.99, (trial + done) / usualTrials));
      const results = simulator.simulateSeeds({ ...options, seed: scenario.options.seed }, seeds, { onProgress });
      for (const { classes, tenants } of results)
        for (const name of Object.keys({ ...classes, ...tenants })) names.add(name);
      trials.set(value, {
        figures: conditions.map(({ measure }) => ({ measure, value: simulator.spreadOf(measure, results).mean })),
        fails: simulator.failuresOf(conditions, results),
      });
      return simulator.worstMiss(conditions, results);
    },
  });
  line.clear();
  if (json) {
    const curve = found.curve.map((tried) => ({ ...tried, fails: trials.get(tried.value)?.fails }));
    process.stdout.write(`${JSON.stringify({ path, soThat: textOf(conditions), ...found, curve })}\n`);
  } else process.stdout.write(told(found, search, simulator.scenarioValue(scenario.source, path)));
  return found.least === undefined ? 1 : 0;
}

function told(found: simulator.FoundValues, search: Search, now: unknown): string {
  const { range, conditions, trials } = search;
  const { least, greatest, others, curve } = found;
  const { path, from, to } = range;
  const rows = curve.map(({ value }) => {
    const { figures, fails } = trials.get(value) ?? { figures: [], fails: [] };
    return [String(value), ...figures, fails.length === 0 ? 'holds' : `no: ${fails.join(', ')}`];
  });
  const soThat = textOf(conditions);
  const lines = table([path, ...conditions.map(({ measure }) => measure.text), 'condition'], rows);
  if (least === undefined || greatest === undefined)
    return `${lines}\nNo value from ${from} to ${to} will do. ${whyNot(found, search)}\n`;
  const lowest = least === from ? `${least}, where the search began` : String(least);
  const highest = greatest === to ? `${greatest}, where the search ended` : String(greatest);
  const spans = others.map((span) => (span.least === span.greatest ? span.least : `${span.least} to ${span.greatest}`));
  return `${lines}\n${soThat} holds for ${path} from ${lowest}, to ${highest}.${
    spans.length === 0 ? '' : ` Apart from these it holds for ${spans.join(' and ')}, and not for all between.`
  }${now === undefined ? '' : ` The scenario has ${String(now)}.`}\n`;
}

/** The reason why nothing that was tried will do. */
function whyNot({ closest: { value, miss } }: simulator.FoundValues, { range, conditions, names }: Search): string {
  const { path } = range;
  if (miss < Infinity) return `${path} = ${value} comes closest: it misses by ${(miss * 100).toFixed(1)} %.`;
  const unknown = conditions.flatMap(({ measure: { who } }) => (who === undefined || names.has(who) ? [] : [who]));
  if (unknown.length === 0) return 'Nobody was served of whom it speaks, or the scenario does not measure it.';
  return `There is no class or tenant ${[...new Set(unknown)].join(', ')}; there are ${[...names].join(', ')}.`;
}

const textOf = (conditions: Conditions): string => conditions.map(({ text }) => text).join(' and ');

/** `gate.maxConcurrency`, `gate.maxConcurrency=4..64`, `arrivals.rate=0.5..20.0`: a point allows more than integers. */
function readRange(text: string): Range {
  const [, path = '', from = '1', to = '1024'] = /^([^=]+?)(?:=([\d.]+?)\.\.([\d.]+))?$/.exec(text) ?? [];
  if (path !== '' && Number(from) < Number(to))
    return { path, from: Number(from), to: Number(to), isInteger: !from.includes('.') && !to.includes('.') };
  throw new FlowConfigError('--find', [{ path: '', expected: 'PATH or PATH=FROM..TO', got: JSON.stringify(text) }]);
}

/** One line for each combination of values. */
export function runSweep(scenario: NamedScenario, given: SimulateArguments, seeds: number, line: ProgressLine): number {
  const axes = given.sweep.map(simulator.parseSweepAxis);
  const all = simulator.combinations(axes);
  const points = all.map((values, index) => {
    let { source } = scenario;
    for (const [axis, { path }] of axes.entries()) source = simulator.withScenarioValue(source, path, values[axis]);
    const { options } = simulator.loadScenario(source, { readFile: scenario.readFile });
    const seed = scenario.options.seed;
    const onProgress = (done: number): void => line.show('sweep', (index + done) / all.length);
    return { values, results: simulator.simulateSeeds({ ...options, seed }, seeds, { onProgress }) };
  });
  line.clear();
  if (given.json) {
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

/** All columns to the right, under their heads. */
function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) =>
    row.map((cell) => (typeof cell === 'string' ? cell : simulator.formatFigure(cell.value, cell.measure.unit))),
  );
  return `${columns([head, ...texts], 0).join('\n')}\n`;
}
