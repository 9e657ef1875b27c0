/** Where imports lead: the package's subpaths to its sources, so that the playground runs what stands in the tree. */
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vitepress';
import { entryPoints } from '../../scripts/entry-points.mjs';

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

const subpaths = Object.entries(entryPoints).map(([name, path]) => ({
  find: name === 'index' ? /^headgate$/ : new RegExp(`^headgate/${name}$`),
  replacement: at(`../${path}`),
}));

/** The pages stand outside of this folder, and use its Vue all the same. */
const vue = [{ find: /^vue$/, replacement: at('node_modules/vue/dist/vue.runtime.esm-bundler.js') }];

/** The playground shares state within the page, and needs nothing of what stands behind these. */
const node = [{ find: /^node:(?:crypto|process)$/, replacement: at('playground/no-node.ts') }];

export const sources: Plugin = {
  name: 'sources',
  config: (_, { isSsrBuild }) => ({
    resolve: { alias: isSsrBuild ? subpaths : [...subpaths, ...node, ...vue] },
    // On the server's side modules are loaded from this folder.
    build: isSsrBuild ? { rollupOptions: { external: [/^vue(?:\/|$)/] } } : {},
  }),
};
