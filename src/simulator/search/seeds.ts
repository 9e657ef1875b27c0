/** Runs the same scenario with several seeds, to tell which part of a figure is chance. */
import { positiveInteger } from '../../base/schema/types.js';
import { checkArguments, fields, hooks as ofHooks, some } from '../check-arguments.js';
import { type SimulationResult, results as someResults } from '../engine/result.js';
import type { SimulationOptions } from '../engine/simulation-options.js';
import { type SimulateHooks, simulate } from '../simulate.js';
import { type Measure, meanOf, oneMeasure } from './measure.js';

/** The seed of the scenario and those that follow it. @throws FlowConfigError */
export function simulateSeeds(
  options: SimulationOptions,
  seeds: number,
  hooks: SimulateHooks = {},
): SimulationResult[] {
  const shape = { options: fields, seeds: positiveInteger(), hooks: ofHooks };
  checkArguments('simulateSeeds', { options, seeds, hooks }, shape);
  const first = options.seed ?? 1;
  return Array.from({ length: seeds }, (_, index) =>
    simulate(
      { ...options, seed: first + index },
      { onProgress: hooks.onProgress && ((done) => hooks.onProgress?.((index + done) / seeds)) },
    ),
  );
}

/** A figure over several seeds. */
export interface Spread {
  readonly mean: number;
  readonly least: number;
  readonly greatest: number;
}

/**
 * Reads the figure from each result; NaN when one of them does not have it. Needs one at least.
 * @throws FlowConfigError
 */
export function spreadOf(measure: Measure, results: readonly SimulationResult[]): Spread {
  checkArguments('spreadOf', { measure, results }, { measure: oneMeasure, results: some(someResults) });
  const figures = results.map((result) => measure.read(result));
  return { mean: meanOf(figures), least: Math.min(...figures), greatest: Math.max(...figures) };
}
