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
  'endpoints',
  'testing',
];

/** Subpaths load the core from the package's own index file, so that every class exists once per format. */
const sharedCore: Plugin = {
  name: 'shared-core',
  setup(build) {
    const isCjs = build.initialOptions.format === 'cjs';
    const index = isCjs ? './index.cjs' : './index.js';
    build.onResolve({ filter: /^(?:\.\.\/){1,2}index\.js$/ }, () => ({ path: index, external: true }));
    // tinyqueue is ESM only: `import` takes the dependency, `require` gets a copy inside the bundle.
    build.onResolve({ filter: /^tinyqueue$/ }, ({ path }) => (isCjs ? undefined : { path, external: true }));
  },
};

export default defineConfig({
  entry: { index: 'src/index.ts', ...Object.fromEntries(subpaths.map((name) => [name, `src/${name}/index.ts`])) },
  format: ['esm', 'cjs'],
  target: 'node20',
  clean: true,
  sourcemap: true,
  splitting: false, // tsup splits CJS through sucrase, which turns `?.` and `??` into closures
  noExternal: ['tinyqueue'], // leaves the decision to the plugin
  esbuildPlugins: [sharedCore],
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } }, // tsup 8 sets baseUrl, deprecated in TypeScript 6
});
