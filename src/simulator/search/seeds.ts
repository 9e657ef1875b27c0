/** Runs the same scenario with several seeds, to tell which part of a figure is chance. */
import type { SimulationResult } from '../engine/result.js';
import type { SimulationOptions } from '../engine/simulation-options.js';
import { type SimulateHooks, simulate } from '../simulate.js';
import { meanOf } from './mean-of.js';
import type { Measure } from './measure.js';

/** The seed of the scenario and those that follow it. */
export function simulateSeeds(
  options: SimulationOptions,
  seeds: number,
  hooks: SimulateHooks = {},
): SimulationResult[] {
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

/** Reads the figure from each result; NaN when one of them does not have it. Needs one at least. */
export function spreadOf(measure: Measure, results: readonly SimulationResult[]): Spread {
  const figures = results.map((result) => measure.read(result));
  return {
    mean: meanOf(figures),
    least: Math.min(...figures),
    greatest: Math.max(...figures),
  };
}
