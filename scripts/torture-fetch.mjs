/** Bundles the clients that leave in every phase and runs them without a test runner: see test/fetch/torture.ts. */
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const outfile = `${root}/test-results/torture-fetch.mjs`;
await build({
  entryPoints: [`${root}/test/fetch/torture.ts`],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  sourcemap: 'inline',
});
await import(outfile);
