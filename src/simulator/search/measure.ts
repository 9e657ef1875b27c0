/** Figures of a result by name, as the command line writes them: `ttft.p99(premium)`, `goodput`, `utilization`. */
import { didYouMean } from '../../base/faults/did-you-mean.js';
import { configError } from '../../base/faults/flow-config-error.js';
import type { SimulationResult } from '../engine/result.js';
import type { GroupFigures } from '../measures/group.js';
import { spendByGroup } from '../servers/spend.js';

/** One figure of a result. */
export interface Measure {
  /** As it was written. */
  readonly text: string;
  readonly unit: 'ms' | 'ratio' | 'per second' | 'count';
  /** Its name without the class or tenant. */
  readonly name: string;
  /** The class or tenant in parentheses. */
  readonly who: string | undefined;
  /** NaN when the result has no such tenant or class, and for a figure of nobody. */
  read(result: SimulationResult): number;
}

const latencies = ['ttft', 'perToken', 'total', 'queued'] as const;
const statistics = { mean: 'meanMs', p50: 'p50Ms', p95: 'p95Ms', p99: 'p99Ms', max: 'maxMs' } as const;

/** What is told of a group, with its unit; `dropped` is the sum of those of every reason. */
const unitOf = {
  served: 'ratio',
  goodput: 'ratio',
  arrived: 'count',
  completed: 'count',
  good: 'count',
  dropped: 'count',
  cancelled: 'count',
  evicted: 'count',
  retries: 'count',
  tokensPerSecond: 'per second',
  completedPerSecond: 'per second',
  servicePerSecond: 'per second',
  meanRunning: 'count',
} as const;

const ofRun: Readonly<Record<string, readonly [Measure['unit'], (result: SimulationResult) => number]>> = {
  utilization: ['ratio', ({ servers }) => meanOf(servers.map(({ utilization }) => utilization))],
  preemptions: ['count', ({ servers }) => servers.reduce((sum, { preemptions }) => sum + preemptions, 0)],
  jain: ['ratio', ({ jainIndex }) => jainIndex],
  'serviceDifference.max': ['per second', ({ serviceDifference }) => serviceDifference?.max ?? NaN],
  'serviceDifference.mean': ['per second', ({ serviceDifference }) => serviceDifference?.mean ?? NaN],
};

const known = [...latencies.map((name) => `${name}.p99`), ...Object.keys(unitOf), ...Object.keys(ofRun), 'spend'];

/** The measure of that name; in parentheses a class or a tenant, else of all requests. @throws FlowConfigError */
export function parseMeasure(text: string): Measure {
  const [, name = '', inParentheses] = /^\s*([\w.]+)\s*(?:\(([^)]+)\))?\s*$/.exec(text) ?? [];
  const who = inParentheses?.trim();
  const group = ({ all, classes, tenants }: SimulationResult): GroupFigures | undefined =>
    who === undefined ? all : (own(classes, who) ?? own(tenants, who));
  const named = { text: text.trim(), name, who };
  const [latency, statistic = 'mean'] = name.split('.');
  const field = latencies.find((candidate) => candidate === latency);
  const take = own(statistics, statistic);
  if (field !== undefined && take !== undefined)
    return { ...named, unit: 'ms', read: (result) => group(result)?.[field][take] ?? NaN };
  if (isOfGroup(name))
    return { ...named, unit: unitOf[name], read: (result) => figureOf(group(result)?.[name] ?? NaN) };
  if (name === 'spend') return { ...named, unit: 'count', read: (result) => spendByGroup(result).get(who) ?? NaN };
  const run = own(ofRun, name);
  if (run !== undefined && who === undefined) return { ...named, unit: run[0], read: run[1] };
  const expected = `a measure such as ${known.join(', ')}, with a class or tenant in parentheses${didYouMean(name, known)}`;
  throw configError('measure', '', expected, JSON.stringify(text));
}

/** `constructor` is no name of a measure, and may be that of a tenant. */
function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

function isOfGroup(name: string): name is keyof typeof unitOf {
  return Object.hasOwn(unitOf, name);
}

function figureOf(figure: GroupFigures[keyof typeof unitOf]): number {
  return typeof figure === 'number' ? figure : Object.values(figure).reduce((sum, count) => sum + count, 0);
}

/** The mean of figures; NaN of none, and where one of them is. */
function meanOf(figures: readonly number[]): number {
  return figures.reduce((sum, figure) => sum + figure, 0) / figures.length;
}

/** A figure over several seeds. */
export type Spread = Readonly<Record<'mean' | 'least' | 'greatest', number>>;

/** Reads the figure from each result, one at least; NaN when one of them lacks it. */
export function spreadOf(measure: Measure, results: readonly SimulationResult[]): Spread {
  const figures = results.map((result) => measure.read(result));
  return { mean: meanOf(figures), least: Math.min(...figures), greatest: Math.max(...figures) };
}
