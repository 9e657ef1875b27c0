import { resolve } from 'node:path';
import type { Plugin } from 'esbuild';
import { defineConfig } from 'tsup';
import { entryPoints } from './scripts/entry-points.mjs';

/**
 * Entry points load each other as files of the package, so that every class exists once. esbuild could share chunks, but
 * then bundlers leave out less: a controller with one detector is a tenth larger.
 */
const sharedEntries: Plugin = {
  name: 'shared-entries',
  setup(build) {
    const nameOf = new Map(Object.entries(entryPoints).map(([name, path]) => [resolve(path), name]));
    build.onResolve({ filter: /\/index\.js$/ }, ({ path, resolveDir }) => {
      const name = nameOf.get(resolve(resolveDir, path).replace(/\.js$/, '.ts'));
      return name === undefined ? undefined : { path: `./${name}.js`, external: true };
    });
  },
};

/** The command loads its parts by hand, so that it can tell which package is missing. */
const commandParts: Plugin = {
  name: 'command-parts',
  setup(build) {
    build.onResolve({ filter: /^\.\/commands\.js$/ }, () => ({ path: './cli-commands.js', external: true }));
  },
};

const { gateway = '', simulator = '', inspector = '', redis = '', 'ext-proc': extProc = '', ...readable } = entryPoints;

/** The code for `import`; that for `require` is made by scripts/build-for-require.mjs. */
const library = defineConfig({
  entry: readable,
  format: 'esm',
  target: 'node20',
  clean: ['!cli.js', '!cli-commands.js', '!{gateway,simulator,inspector,redis,ext-proc}.js'], // which are built at the same time
  // No source maps: they would be two thirds of the package, and what is not minified can be read as it is.
  removeNodeProtocol: false, // `stream` may be somebody's package, `node:stream` cannot
  splitting: false,
  esbuildPlugins: [sharedEntries],
});

/** The largest: programs that hosts start, pages, shared state. */
const programs = defineConfig({
  ...library,
  entry: { gateway, simulator, inspector, redis, 'ext-proc': extProc },
  clean: false,
  esbuildOptions: (options) => {
    options.minifyWhitespace = true;
  },
});

/**
 * Once, for ESM; those for CommonJS are made of them by scripts/declare-for-require.mjs. They are bundled from what the
 * compiler wrote for each file: from sources, tsup would check all types once for each file that it reads.
 */
const declarations = defineConfig({
  entry: Object.fromEntries(
    Object.entries(entryPoints).map(([name, path]) => [name, `.declarations/${path.replace(/\.ts$/, '.d.ts')}`]),
  ),
  format: 'esm',
  // tsup 8 sets baseUrl, deprecated in TypeScript 6.
  dts: { only: true, compilerOptions: { ignoreDeprecations: '6.0' } },
});

/** ESM only: nobody requires a command, or imports it: it has no white space. */
const command = defineConfig({
  entry: { cli: 'src/gateway/cli/main.ts', 'cli-commands': 'src/gateway/cli/commands.ts' },
  format: 'esm',
  target: 'node20',
  removeNodeProtocol: false,
  splitting: false,
  esbuildOptions: (options) => {
    options.minifyWhitespace = true;
  },
  esbuildPlugins: [sharedEntries, commandParts],
});

export default [library, programs, declarations, command];
