/** Links between pages lead to a file, and to a heading in it. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { pages } from './pages.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

const proseOf = (page: string): string => readFileSync(root + page, 'utf8').replaceAll(/^ *```.*?^ *```$/gms, '');

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsOf(page: string): string[] {
  return [...proseOf(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  );
}

function leads(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  // The generated reference is not there before it is made.
  if (target.startsWith('docs/reference')) return true;
  if (!existsSync(root + target)) return false;
  return anchor === undefined || !target.endsWith('.md') || anchorsOf(target).includes(anchor);
}

it.each([...pages, 'CONTRIBUTING.md', 'CHANGELOG.md'])('%s has links that lead somewhere', (page) => {
  const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  expect(links.filter((link) => !/^[a-z]+:|^\//.test(link) && !leads(page, link))).toEqual([]);
});
