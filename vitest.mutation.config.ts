/**
 * The tests that mutation testing runs: those of the layers that it mutates, without what listens, spawns or measures.
 * `MUTATION_TESTS` names other ones (paths below test/, separated by commas), for single files of which somebody knows
 * what tests them.
 */
import { defineConfig, mergeConfig } from 'vitest/config';
import { common } from './vitest.common.js';

const layers = [
  'base',
  'tiers',
  'gate',
  'admission',
  'endpoints',
  'core',
  'contract',
  'testing',
  'property/model.test.ts',
];
const paths = process.env.MUTATION_TESTS?.split(',') ?? layers;
const merged = mergeConfig(common, defineConfig({}));

export default defineConfig({
  ...merged,
  test: {
    ...merged.test,
    include: paths.map((path) => (path.endsWith('.ts') ? `test/${path}` : `test/${path}/**/*.test.ts`)),
    // Simulations of minutes on end, and a million requests: they kill few mutants that nothing else does. A
    // `testNamePattern` would not do: Stryker sets its own, so that a mutant meets the tests alone that come to it.
    exclude:
      process.env.MUTATION_TESTS === undefined
        ? ['test/tiers/2-fairness/by-cost/{bounds,histories}.test.ts', 'test/tiers/many-flows.test.ts']
        : [],
    typecheck: { enabled: false },
    // One load of the sources serves all test files: a mutant is switched on inside them.
    isolate: false,
    reporters: ['default'],
  },
});
