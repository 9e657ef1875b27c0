import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/package/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 240_000,
    fileParallelism: false,
    reporters: ['default', 'json'],
    outputFile: { json: './test-results/package.json' },
  },
});
