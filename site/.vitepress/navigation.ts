/**
 * Pages by need (https://diataxis.fr): tutorials teach, how-to guides solve, the reference tells, explanations give
 * reasons. A page is named by its own heading. A page that no list has stands at the end of the guides, so that none is
 * out of reach.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { DefaultTheme } from 'vitepress';

const docs = new URL('../../docs/', import.meta.url);

const tutorials = ['getting-started', 'migrate'];

const guides = [
  'policies/README',
  'recipes',
  'quotas',
  'shadow',
  'capacity',
  'gateway',
  'envoy',
  'sockets',
  'deployment',
  'scale-out',
  'client',
  'fetch',
  'testing',
  'simulator',
  'troubleshooting',
];

const reference = ['api', 'configuration', 'options', 'file-options', 'http', 'endpoints', 'metrics', 'plugins'];

const explanation = ['concepts', 'differences', 'proof', 'benchmarks', 'threat-model', 'architecture', 'decisions'];

const policies = pagesIn('policies').filter((page) => page !== 'policies/README');
const generated = [...pagesIn('reference'), ...pagesIn('reference/headgate')].filter(
  (page) => page !== 'reference/README',
);

const listed = new Set([...tutorials, ...guides, ...reference, ...explanation, ...policies]);
const others = pagesIn('').filter((page) => !listed.has(page) && page !== 'index' && page !== 'playground');

interface Version {
  readonly text: string;
  readonly link: string;
}

/** `versions`: where the pages of all versions stand; none while the site is built alone. */
export function navigation(version: string, versions: readonly Version[]): DefaultTheme.NavItem[] {
  // Each version is a site of its own, which the router of this one does not know.
  const others = versions.map(({ text, link }) => ({ text: `Pages of ${text}`, link, target: '_self' }));
  return [
    { text: 'Start', link: '/getting-started', activeMatch: '^/getting-started' },
    { text: 'Playground', link: '/playground' },
    { text: 'Policies', link: '/policies/', activeMatch: '^/policies/' },
    { text: 'API', link: '/reference/', activeMatch: '^/reference/' },
    {
      text: `v${version}`,
      items: [
        { text: 'Changelog', link: 'https://github.com/headgate/headgate/blob/main/CHANGELOG.md' },
        ...others,
        { text: 'All versions', link: 'https://github.com/headgate/headgate/tags' },
        { text: 'Contributing', link: 'https://github.com/headgate/headgate/blob/main/CONTRIBUTING.md' },
      ],
    },
  ];
}

/** Policies and exports have lists of their own beside them: there are too many for the others' list. */
export function sidebar(): DefaultTheme.SidebarMulti {
  const home = { text: 'All pages', link: '/getting-started' };
  const policyItems = policies.map((page) => ({ ...item(page), text: page.slice('policies/'.length) }));
  return {
    '/policies/': [{ items: [home, item('policies/README')] }, { text: 'Every policy', items: policyItems }],
    '/reference/': [
      { items: [home] },
      { text: 'Every export', items: [{ text: 'By subpath', link: '/reference/' }, ...generated.map(item)] },
    ],
    '/': [
      { text: 'Tutorials', items: [...tutorials.map(item), { text: 'Playground', link: '/playground' }] },
      { text: 'How-to guides', items: [...guides, ...others].map(item) },
      { text: 'Reference', items: [...reference.map(item), { text: 'Every export', link: '/reference/' }] },
      { text: 'Explanation', items: explanation.map(item) },
    ],
  };
}

/** Pages of a folder, by name, without `.md`. */
function pagesIn(folder: string): string[] {
  const path = new URL(`${folder}/`, docs);
  if (folder !== '' && !existsSync(path)) return [];
  const files = readdirSync(folder === '' ? docs : path).filter((name) => name.endsWith('.md'));
  return files.map((name) => `${folder === '' ? '' : `${folder}/`}${name.slice(0, -'.md'.length)}`).sort();
}

function item(page: string): DefaultTheme.SidebarItem {
  const text = readFileSync(new URL(`${page}.md`, docs), 'utf8');
  const heading = /^# (.+)$/m.exec(text)?.[1] ?? page;
  return { text: heading.replaceAll('`', ''), link: `/${page.replace(/README$/, '')}` };
}
