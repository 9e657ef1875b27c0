import { availableParallelism } from 'node:os';
import { defineConfig, mergeConfig } from 'vitest/config';
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

// The package test has its own configuration: it builds and installs, which a watch run should not do.
export default mergeConfig(
  common,
  defineConfig({
    test: {
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
