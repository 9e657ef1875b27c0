import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Tests that need programs from outside npm: scripts/test-observability.mjs installs them and tells where they are.
export default defineConfig({
  resolve: {
    alias: [
      { find: /^headgate$/, replacement: fileURLToPath(new URL('./src/index.ts', import.meta.url)) },
      { find: /^headgate\/(\w+)$/, replacement: fileURLToPath(new URL('./src/$1/index.ts', import.meta.url)) },
    ],
  },
  test: {
    include: ['test/observability/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    reporters: ['default', 'json'],
    outputFile: { json: './test-results/observability.json' },
  },
});
