import { defineConfig, mergeConfig } from 'vitest/config';
import { common } from './vitest.common.js';

// Layers whose tests have clocks of their own, and touch no process, port or global: their files share a worker's modules, which saves most of
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
].map((layer) => `test/${layer}/**/*.test.ts`);
const elsewhere = ['test/package/**', 'test/programs/**'];

// The package test has its own configuration: it builds and installs, which a watch run should not do.
export default mergeConfig(
  common,
  defineConfig({
    test: {
      projects: [
        { extends: true, test: { name: 'layers', include: shared, isolate: false } },
        {
          extends: true,
          test: {
            name: 'others',
            include: ['test/**/*.test.ts'],
            exclude: [...elsewhere, ...shared],
            typecheck: {
              enabled: true,
              include: ['test/types/**/*.test-d.ts'],
              tsconfig: './test/tsconfig.json',
              // `npm run typecheck` reports the sources; here only the type tests count.
              ignoreSourceErrors: true,
            },
          },
        },
      ],
    },
  }),
);
