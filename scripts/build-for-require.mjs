// The code for `require`, beside the one for `import` that tsup makes. Programs that `require` are not tree-shaken, so
// what entry points share is in files of its own: every class exists once, and the package is a quarter smaller.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';
import { entryPoints } from './entry-points.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const forNode20 = { target: 'node20', platform: 'node', logLevel: 'warning' };

/** It is ESM only, so that `require` gets a copy. */
const tinyqueueInside = {
  name: 'tinyqueue-inside',
  setup: ({ onResolve }) => {
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      path === 'tinyqueue' || kind === 'entry-point' ? undefined : { path, external: true },
    );
  },
};

const { outputFiles } = await build({
  ...forNode20,
  absWorkingDir: root,
  entryPoints,
  bundle: true,
  splitting: true,
  format: 'esm',
  outdir: 'dist',
  outExtension: { '.js': '.cjs' },
  chunkNames: 'shared-[hash]',
  plugins: [tinyqueueInside],
  write: false,
});
await Promise.all(
  outputFiles.map(async ({ path, text }) => {
    const { code } = await transform(text, {
      ...forNode20,
      format: 'cjs',
      minifyWhitespace: true,
      minifySyntax: true,
    });
    writeFileSync(join(root, 'dist', path.slice(path.lastIndexOf('/') + 1)), code);
  }),
);
