import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { entryPoints } from './scripts/entry-points.mjs';

// Tests keep their scratch files there, beside the sources that these import.
mkdirSync(new URL('./test-results', import.meta.url), { recursive: true });

/** What all configurations that read the sources have in common. */
export const common = defineConfig({
  resolve: {
    // Snippets and examples import the package by its name: here that is the source.
    alias: [
      ...Object.entries(entryPoints).map(([name, path]) => ({
        find: name === 'index' ? /^headgate$/ : new RegExp(`^headgate/${name}$`),
        replacement: fileURLToPath(new URL(path, import.meta.url)),
      })),
      // Another line of undici than the one that is installed: see scripts/node-matrix.mjs.
      ...(process.env.HEADGATE_UNDICI === undefined
        ? []
        : [{ find: /^undici$/, replacement: process.env.HEADGATE_UNDICI }]),
    ],
  },
  test: {
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
