/**
 * Mutation testing: `npm run mutation -- --mutate src/tiers/flows-aside.ts,src/gate/gate.ts`. CONTRIBUTING.md says more.
 * The tests are those of the layers that it changes, without what listens, spawns or measures. `MUTATION_TESTS` names
 * others: paths below test/, with commas between them.
 */
process.env.MUTATION_TESTS ??= 'base,tiers,gate,admission,endpoints,core,contract,testing,property/model.test.ts';

export default {
  testRunner: 'vitest',
  vitest: { related: false },
  plugins: ['@stryker-mutator/vitest-runner'],
  mutate: [
    'src/base/queues/**/*.ts',
    'src/tiers/**/*.ts',
    'src/gate/**/*.ts',
    'src/admission/**/*.ts',
    'src/eviction/**/*.ts',
    'src/core/engine/**/*.ts',
  ],
  ignorePatterns: [
    'dist',
    'bench',
    'examples',
    'docs',
    'etc',
    'test-results',
    'coverage',
    '.ci',
    'test/programs',
    'test/package',
  ],
  coverageAnalysis: 'perTest',
  // A constant of a module is made once, before any test: each such mutant would need a run of everything.
  ignoreStatic: true,
  concurrency: 1,
  timeoutMS: 10_000,
  timeoutFactor: 2,
  reporters: ['clear-text', 'progress-append-only', 'json'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, allowEmojis: false },
  jsonReporter: { fileName: 'test-results/mutation.json' },
  tempDirName: 'test-results/.stryker',
  allowConsoleColors: false,
  disableTypeChecks: false,
};
