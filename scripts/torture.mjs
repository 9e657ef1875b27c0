/** Bundles the random histories of test/property and runs them without a test runner: see test/property/torture.ts. */
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const outfile = `${root}/test-results/torture.mjs`;
await build({
  entryPoints: [`${root}/test/property/torture.ts`],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  sourcemap: 'inline',
});
await import(outfile);
