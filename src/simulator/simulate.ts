/** Runs a simulation to its end; also with several seeds, to tell which part of a figure is chance. */
import * as s from '../base/schema/schema.js';
import { checkArguments, fields, hooks as ofHooks } from './schemas.js';
import type { SimulationResult } from './engine/result.js';
import { Simulation } from './engine/simulation.js';
import type { SimulationOptions } from './engine/simulation-options.js';

export interface SimulateHooks {
  /** Called now and then with the part of the traffic's time that has been simulated, 0…1. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

/** Events between two calls of `onProgress`. */
const eventsPerReport = 50_000;

/**
 * Finds what the controller would do with this traffic and these servers. In one go, without a timer: a million
 * requests take seconds. @throws FlowConfigError that lists everything that is wrong
 * @example
 * const result = simulate({
 *   duration: '10m',
 *   servers: [{ model: 'slots', slots: 8, serviceTime: { type: 'exponential', mean: 100 } }],
 *   traffic: [{ tenant: 'acme', arrivals: { type: 'poisson', rate: 70 } }],
 *   flow: () => ({ saturationDetector: concurrencyDetector({ maxConcurrency: 8 }) }),
 * });
 * console.log(result.all.queued.p99Ms);
 */
export function simulate(options: SimulationOptions, hooks: SimulateHooks = {}): SimulationResult {
  s.parse(ofHooks, hooks, 'simulate');
  const { onProgress } = hooks;
  const simulation = new Simulation(options);
  let events = 0;
  while (simulation.step()) {
    if (onProgress !== undefined && ++events % eventsPerReport === 0) onProgress(simulation.progress);
  }
  return simulation.result();
}

/** The seed of the scenario and those that follow it. @throws FlowConfigError */
export function simulateSeeds(
  options: SimulationOptions,
  seeds: number,
  hooks: SimulateHooks = {},
): SimulationResult[] {
  const shape = { options: fields, seeds: s.positiveInteger(), hooks: ofHooks };
  checkArguments('simulateSeeds', { options, seeds, hooks }, shape);
  const first = options.seed ?? 1;
  return Array.from({ length: seeds }, (_, index) =>
    simulate(
      { ...options, seed: first + index },
      { onProgress: hooks.onProgress && ((done) => hooks.onProgress?.((index + done) / seeds)) },
    ),
  );
}
