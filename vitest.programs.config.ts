import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { entryPoints } from './scripts/entry-points.mjs';

// Tests that need programs from outside npm: scripts/test-programs.mjs installs them and tells where they are.
export default defineConfig({
  resolve: {
    alias: Object.entries(entryPoints).map(([name, path]) => ({
      find: name === 'index' ? /^headgate$/ : new RegExp(`^headgate/${name}$`),
      replacement: fileURLToPath(new URL(path, import.meta.url)),
    })),
  },
  test: {
    include: ['test/programs/**/*.test.ts'],
    exclude: ['test/programs/site/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    reporters: ['default', 'json'],
    outputFile: { json: './test-results/programs.json' },
  },
});
