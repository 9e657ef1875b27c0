import { defineConfig } from 'vitest/config';

// Tests of the site as it is built: `npm run docs:check` builds it, and brings the browser.
export default defineConfig({
  test: {
    include: ['test/programs/site/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    fileParallelism: false,
    maxConcurrency: 2,
    reporters: ['default', 'json'],
    outputFile: { json: './test-results/site.json' },
  },
});
