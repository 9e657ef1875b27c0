// Bundles a TypeScript program of the tests, and runs it without a test runner: `node scripts/run-bundled.mjs FILE …`.
// The rest is its own.
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const [file] = process.argv.splice(2, 1);
if (file === undefined)
  throw new Error('run-bundled: expected the path of a program, such as test/property/torture.ts; got nothing');
const outfile = join(root, 'test-results', `${basename(dirname(file))}-${basename(file, '.ts')}.mjs`);
await build({
  entryPoints: [join(root, file)],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  sourcemap: 'inline',
});
await import(outfile);
