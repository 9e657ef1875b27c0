import { defineConfig } from 'vitest/config';

// The package test has its own configuration: it builds and installs, which a watch run should not do.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/package/**'],
    typecheck: {
      enabled: true,
      include: ['test/types/**/*.test-d.ts'],
      tsconfig: './test/tsconfig.json',
      // `npm run typecheck` reports the sources; here only the type tests count.
      ignoreSourceErrors: true,
    },
    testTimeout: 20_000,
    hookTimeout: 20_000,
    restoreMocks: true,
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
