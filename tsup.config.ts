import type { Plugin } from 'esbuild';
import { defineConfig } from 'tsup';

const subpaths = [
  'config',
  'http',
  'node',
  'express',
  'koa',
  'fastify',
  'hono',
  'undici',
  'client',
  'prometheus',
  'opentelemetry',
  'inspector',
  'endpoints',
  'gateway',
  'testing',
];

/** Subpaths load the core from the package's own index file, so that every class exists once per format. */
const sharedCore: Plugin = {
  name: 'shared-core',
  setup(build) {
    const isCjs = build.initialOptions.format === 'cjs';
    const index = isCjs ? './index.cjs' : './index.js';
    build.onResolve({ filter: /^(?:\.\.\/){1,2}index\.js$/ }, () => ({ path: index, external: true }));
    // What is made of other subpaths takes them as its users would.
    build.onResolve({ filter: /^\.\.\/\w+\/index\.js$/ }, ({ path }) => {
      const name = path.split('/')[1];
      return { path: `./${name}.${isCjs ? 'cjs' : 'js'}`, external: true };
    });
    // tinyqueue is ESM only: `import` takes the dependency, `require` gets a copy inside the bundle.
    build.onResolve({ filter: /^tinyqueue$/ }, ({ path }) => (isCjs ? undefined : { path, external: true }));
  },
};

/** The command loads its parts by hand, so that it can tell which package is missing. */
const commandParts: Plugin = {
  name: 'command-parts',
  setup(build) {
    build.onResolve({ filter: /^\.\/commands\.js$/ }, () => ({ path: './cli-commands.js', external: true }));
  },
};

const library = defineConfig({
  entry: { index: 'src/index.ts', ...Object.fromEntries(subpaths.map((name) => [name, `src/${name}/index.ts`])) },
  format: ['esm', 'cjs'],
  target: 'node20',
  clean: ['!cli.js', '!cli.js.map', '!cli-commands.js', '!cli-commands.js.map'], // which are built at the same time
  sourcemap: true,
  splitting: false, // tsup splits CJS through sucrase, which turns `?.` and `??` into closures
  noExternal: ['tinyqueue'], // leaves the decision to the plugin
  esbuildPlugins: [sharedCore],
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } }, // tsup 8 sets baseUrl, deprecated in TypeScript 6
});

/** ESM only: nobody requires a command. */
const command = defineConfig({
  entry: { cli: 'src/cli/main.ts', 'cli-commands': 'src/cli/commands.ts' },
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  splitting: false,
  esbuildPlugins: [sharedCore, commandParts],
});

export default [library, command];
