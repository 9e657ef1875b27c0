/** Which part of the requests that came was served within its targets. */
import { FlowConfigError } from '../../../src/index.js';

/** Latencies that can have a target, in ms. `itlMs`: the mean time between two tokens of a response. */
export interface Latencies {
  readonly ttftMs?: number | undefined;
  readonly itlMs?: number | undefined;
  readonly e2eMs?: number | undefined;
}

export type SloDimension = 'ttft' | 'itl' | 'e2e';

/**
 * A request that was served to its end. A latency that is missing misses its target; a response of one token has an
 * `itlMs` of 0.
 */
export interface CompletedRequest extends Latencies {
  /** SLO class; empty: `default`. */
  readonly class?: string | undefined;
}

export interface SloReport {
  /** Targets by class, ms. A class without any is left out of the report. */
  readonly targets: Readonly<Record<string, Latencies>>;
  /** Requests that came, by class, counted before anything was decided: what was refused or never ended is a miss. */
  readonly arrivals: Readonly<Record<string, number>>;
  readonly completed: readonly CompletedRequest[];
}

/** Figures of one class. Attainment is a ratio from 0 to 1, 0 when nothing came. */
export interface ClassAttainment {
  /** Completed requests that met every target. */
  readonly good: number;
  readonly arrivals: number;
  readonly attainment: number;
  /**
   * Which part of the completed requests met this one target; only dimensions with a target, and only when something
   * completed.
   */
  readonly byDimension: Readonly<Partial<Record<SloDimension, number>>>;
}

export interface SloAttainment {
  /** Good requests of all classes with targets / arrivals of the same classes. */
  readonly overall: number;
  readonly perClass: Readonly<Record<string, ClassAttainment>>;
}

const dimensions = [
  ['ttft', 'ttftMs'],
  ['itl', 'itlMs'],
  ['e2e', 'e2eMs'],
] as const satisfies readonly (readonly [SloDimension, keyof Latencies])[];

/**
 * `good / arrivals`, of all classes and of each. A target is met up to and including its value, and a request is good
 * when it meets every target of its class. O(requests). Source: BLIS, goodput: SLO attainment over several dimensions.
 * @throws FlowConfigError when more requests of a class completed than came.
 */
export function sloAttainment({ targets, arrivals, completed }: SloReport): SloAttainment {
  const classes = Object.entries(targets).flatMap(([name, target]) => {
    const goals = dimensions.flatMap(([dimension, key]) =>
      target[key] === undefined ? [] : [{ dimension, key, mostMs: target[key] }],
    );
    if (goals.length === 0) return [];
    const served = completed.filter((request) => (request.class || 'default') === name);
    const came = arrivalsOf(name, arrivals);
    if (!(came >= served.length)) throw tooFewArrivals(name, served.length, came);
    const good = served.filter((request) => goals.every(({ key, mostMs }) => isMet(request[key], mostMs))).length;
    const byDimension = Object.fromEntries(
      goals.flatMap(({ dimension, key, mostMs }) =>
        served.length === 0
          ? []
          : [[dimension, ratio(served.filter((request) => isMet(request[key], mostMs)).length, served.length)]],
      ),
    );
    return [[name, { good, arrivals: came, attainment: ratio(good, came), byDimension }] as const];
  });
  const sum = (key: 'good' | 'arrivals'): number => classes.reduce((total, [, figures]) => total + figures[key], 0);
  return { overall: ratio(sum('good'), sum('arrivals')), perClass: Object.fromEntries(classes) };
}

function isMet(latencyMs: number | undefined, mostMs: number): boolean {
  return latencyMs !== undefined && latencyMs <= mostMs;
}

function arrivalsOf(name: string, arrivals: SloReport['arrivals']): number {
  const counted = (key: string): number => (Object.hasOwn(arrivals, key) ? (arrivals[key] ?? 0) : 0);
  return name === 'default' ? counted('default') + counted('') : counted(name);
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

function tooFewArrivals(name: string, served: number, came: number): FlowConfigError {
  return new FlowConfigError('sloAttainment', [
    {
      path: `arrivals.${name}`,
      expected: `at least ${served}, the completed requests of the class`,
      got: `${came} (number)`,
    },
  ]);
}
