/**
 * The site: the pages of docs/ as they stand, and the reference that is made of the declarations. Nothing is fetched
 * from other hosts.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { emptyHeadsAreCells } from './empty-heads.ts';
import { indentedCodeIsFenced } from './indented-code.ts';
import { linksToSources, slugify } from './links.ts';
import { navigation, sidebar } from './navigation.ts';
import { writePlainPages } from './plain-pages.ts';
import { sources } from './sources.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

export default defineConfig({
  title: 'headgate',
  description:
    'Flow control for LLM gateways: priority, tenant fairness and deadlines while the model servers are full',
  lang: 'en',
  srcDir: '../docs',
  outDir: 'dist',
  cacheDir: 'node_modules/.cache/vitepress',
  /** Where the site is served from, with a slash at both ends: each version can have a folder of its own. */
  base: (process.env.DOCS_BASE ?? '/') as `/${string}/`,
  rewrites: {
    'policies/README.md': 'policies/index.md',
    'reference/README.md': 'reference/index.md',
  },
  ignoreDeadLinks: 'localhostLinks',
  metaChunk: true,
  // A page loads itself and nothing that the reader has not asked for.
  router: { prefetchLinks: false },
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${process.env.DOCS_BASE ?? '/'}favicon.svg` }],
    ['meta', { name: 'theme-color', content: '#0f766e' }],
  ],
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    // As GitHub names headings, so that links hold there and here.
    anchor: { slugify, level: [1, 2, 3] },
    image: { lazyLoading: true },
    config: (markdown) => {
      linksToSources(markdown);
      emptyHeadsAreCells(markdown);
      indentedCodeIsFenced(markdown);
    },
  },
  // The theme gives every page but the home its landmark.
  transformHtml: (html) => html.replace('<div class="VPContent is-home"', '<div role="main" class="VPContent is-home"'),
  buildEnd: ({ pages, srcDir, outDir, site: { base, title, description } }) => {
    const lists = Object.values(sidebar()).reverse();
    // The general list first; those of policies and exports follow.
    const groups = lists.flatMap((list) => (Array.isArray(list) ? list : list.items));
    writePlainPages({ pages, from: srcDir, to: outDir, base, title, description, groups });
  },
  themeConfig: {
    nav: navigation(version, JSON.parse(process.env.DOCS_VERSIONS ?? '[]')),
    sidebar: sidebar(),
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    socialLinks: [{ icon: 'github', link: 'https://github.com/headgate/headgate' }],
    editLink: { pattern: 'https://github.com/headgate/headgate/edit/main/docs/:path' },
    footer: { message: 'MIT licence' },
  },
  vite: {
    plugins: [sources],
    server: { fs: { allow: [fileURLToPath(new URL('../..', import.meta.url))] } },
  },
});
