/**
 * All tests, in projects. `vitest run` runs the first two; `vitest run --project package` any other.
 *
 *     together, apart   what needs nothing but npm
 *     package           the packed tarball, which it builds and installs
 *     programs, site    what needs programs from outside npm: scripts/test-programs.mjs installs them
 *     floors            each peer at the lowest version that is allowed: scripts/test-floors.mjs installs them
 *     mutation          what Stryker runs again and again: stryker.config.mjs
 */
import { mkdirSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import manifest from './package.json' with { type: 'json' };
import { writePage } from './scripts/build-inspector-page.mjs';
import { writeStoreScripts } from './scripts/build-store-scripts.mjs';
import { entryPoints } from './scripts/entry-points.mjs';

// Tests keep their scratch files there, beside the sources that these import.
mkdirSync(new URL('./test-results', import.meta.url), { recursive: true });
await writePage();
await writeStoreScripts();

const { FLOORS_FOLDER, HEADGATE_UNDICI, MUTATION_TESTS } = process.env;

/** Snippets and examples import the package by its name: where sources are tested, that is the source. */
const sources = Object.entries(entryPoints).map(([name, path]) => ({
  find: name === 'index' ? /^headgate$/ : new RegExp(`^headgate/${name}$`),
  replacement: fileURLToPath(new URL(path, import.meta.url)),
}));

/** Another line of undici than the one that is installed: see scripts/node-matrix.mjs. */
const otherUndici = HEADGATE_UNDICI === undefined ? [] : [{ find: /^undici$/, replacement: HEADGATE_UNDICI }];

// Folders whose tests leave nothing behind in their process: their files share a worker's modules, which saves most of
// the time that importing takes.
const shared = [
  'base',
  'tiers',
  'endpoints',
  'gate',
  'constraints',
  'admission',
  'eviction',
  'plugins',
  'core',
  'config',
  'testing',
  'contract',
  'conformance',
  'upstream',
  'adapters',
  'fetch',
  'client',
  'observability',
  'simulator',
  'theory',
  'property',
  'docs',
  'site',
].map((folder) => `test/${folder}/**/*.test.ts`);

// Vitest begins with the largest files, until it has run them once. These are small and take long: as the last ones they
// would keep one core, and leave the other idle.
const slow = [
  'simulator/queueing-theory',
  'theory/theory',
  'redis/leases/table',
  'redis/quotas/virtual-time',
  'redis/topologies/cluster',
  'redis/topologies/sentinel',
];

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const groupOf = ({ project }: TestSpecification): number => project.config.sequence.groupOrder;
    const isSlow = ({ moduleId }: TestSpecification): boolean =>
      slow.some((name) => moduleId.endsWith(`/test/${name}.test.ts`));
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => groupOf(a) - groupOf(b) || Number(isSlow(b)) - Number(isSlow(a)));
  }
}

const projects: TestProjectConfiguration[] = [
  {
    extends: true,
    resolve: { alias: [...sources, ...otherUndici] },
    test: { name: 'together', include: shared, isolate: false },
  },
  {
    extends: true,
    resolve: { alias: [...sources, ...otherUndici] },
    test: {
      name: 'apart',
      // Most of them wait for servers, timers and processes, and leave the cores to the others.
      maxWorkers: 2 * availableParallelism(),
      sequence: { groupOrder: 1 },
      include: ['test/**/*.test.ts'],
      exclude: ['test/package/**', 'test/programs/**', ...shared],
      typecheck: {
        enabled: true,
        include: ['test/types/**/*.test-d.ts'],
        tsconfig: './test/types/tsconfig.json',
        // `npm run typecheck` reports the sources; here only the type tests count.
        ignoreSourceErrors: true,
      },
    },
  },
  {
    extends: true,
    test: {
      name: 'package',
      include: ['test/package/**/*.test.ts'],
      fileParallelism: false,
      sequence: { groupOrder: 2 },
    },
  },
  {
    extends: true,
    resolve: { alias: sources },
    test: {
      name: 'programs',
      include: ['test/programs/**/*.test.ts'],
      exclude: ['test/programs/site/**'],
      fileParallelism: false,
      sequence: { groupOrder: 3 },
    },
  },
  {
    extends: true,
    test: {
      name: 'site',
      include: ['test/programs/site/**/*.test.ts'],
      fileParallelism: false,
      maxConcurrency: 2,
      sequence: { groupOrder: 4 },
    },
  },
];

if (FLOORS_FOLDER !== undefined) {
  const installed = readdirSync(join(FLOORS_FOLDER, 'node_modules'));
  const floors = Object.keys(manifest.peerDependencies)
    .filter((name) => installed.includes(name.split('/')[0] as string))
    .map((name) => ({ find: new RegExp(`^${name}(?=/|$)`), replacement: join(FLOORS_FOLDER, 'node_modules', name) }));
  projects.push({
    extends: true,
    resolve: { alias: [...sources, ...floors] },
    test: { name: 'floors', include: ['test/**/*.test.ts'], sequence: { groupOrder: 5 } },
  });
}

/** Simulations of minutes on end, and a million requests: they kill few mutants that nothing else does. */
const tooSlowForMutants = [
  'tiers/2-fairness/by-cost/bounds.test.ts',
  'tiers/2-fairness/by-cost/histories.test.ts',
  'tiers/many-flows.test.ts',
];

/** Stryker takes all projects that there are, and gives tests that waste no time on anything but mutants. */
function mutationProject(paths: readonly string[]): TestProjectConfiguration {
  return {
    extends: true,
    resolve: { alias: sources },
    test: {
      name: 'mutation',
      include: paths.map((path) => `test/${path}${path.endsWith('.ts') ? '' : '/**/*.test.ts'}`),
      exclude: tooSlowForMutants.filter((path) => !paths.includes(path)).map((path) => `test/${path}`),
      // One load of the sources serves all test files: a mutant is switched on inside them.
      isolate: false,
    },
  };
}

export default defineConfig({
  test: {
    // These bound what hangs, and nothing else: a test waits for conditions, on a machine as busy as it may be.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000, interval: 10 } },
    restoreMocks: true,
    // The process that collects results has little to do itself.
    maxWorkers: '100%',
    reporters: MUTATION_TESTS === undefined ? ['default', 'json'] : ['default'],
    outputFile: { json: './test-results/vitest.json' },
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      reporter: ['text-summary', 'html'],
    },
    sequence: { sequencer: SlowFirst },
    ...(MUTATION_TESTS === undefined
      ? { project: ['together', 'apart'], projects }
      : { projects: [mutationProject(MUTATION_TESTS.split(','))] }),
  },
});
