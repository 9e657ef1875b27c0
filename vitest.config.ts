import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { entryPoints } from './scripts/entry-points.mjs';

// Tests keep their scratch files there, beside the sources that these import.
mkdirSync(new URL('./test-results', import.meta.url), { recursive: true });

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
export default defineConfig({
  resolve: {
    // Snippets and examples import the package by its name: here that is the source.
    alias: [
      ...Object.entries(entryPoints).map(([name, path]) => ({
        find: name === 'index' ? /^headgate$/ : new RegExp(`^headgate/${name}$`),
        replacement: fileURLToPath(new URL(path, import.meta.url)),
      })),
      // Another line of undici than the one that is installed: see scripts/node-matrix.mjs.
      ...(process.env.HEADGATE_UNDICI === undefined ? [] : [{ find: /^undici$/, replacement: process.env.HEADGATE_UNDICI }]),
    ],
  },
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
    // These bound what hangs, and nothing else: a test waits for conditions, on a machine as busy as it may be.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000, interval: 10 } },
    restoreMocks: true,
    // The process that collects results has little to do itself.
    maxWorkers: '100%',
    passWithNoTests: true,
    reporters: ['default', 'json'],
    outputFile: { json: './test-results/vitest.json' },
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      reporter: ['text-summary', 'html'],
    },
  },
});
