import { availableParallelism } from 'node:os';
import { defineConfig, mergeConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { common } from './vitest.common.js';

// Folders whose tests leave nothing behind in their process: their files share a worker's modules, which saves most of
// the time that importing takes.
const shared = [
  'base',
  'tiers',
  'endpoints',
  'gate',
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
const elsewhere = ['test/package/**', 'test/programs/**'];

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

// The package test has its own configuration: it builds and installs, which a watch run should not do.
export default mergeConfig(
  common,
  defineConfig({
    test: {
      sequence: { sequencer: SlowFirst },
      projects: [
        { extends: true, test: { name: 'together', include: shared, isolate: false } },
        {
          extends: true,
          test: {
            name: 'apart',
            // Most of them wait for servers, timers and processes, and leave the cores to the others.
            maxWorkers: 2 * availableParallelism(),
            sequence: { groupOrder: 1 },
            include: ['test/**/*.test.ts'],
            exclude: [...elsewhere, ...shared],
            typecheck: {
              enabled: true,
              include: ['test/types/**/*.test-d.ts'],
              tsconfig: './test/types/tsconfig.json',
              // `npm run typecheck` reports the sources; here only the type tests count.
              ignoreSourceErrors: true,
            },
          },
        },
      ],
    },
  }),
);
