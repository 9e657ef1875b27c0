/** Every page as it is built: its links lead to pages and headings that are there, it loads nothing from elsewhere, and it stays small. */
import { existsSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { fileOf, htmlOf, pages } from './built-site.js';

const all = pages();
const most = 150_000;

const decoded = (text: string): string =>
  text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");

function idsOf(page: string): ReadonlySet<string> {
  return new Set([...htmlOf(page).matchAll(/\sid="([^"]*)"/g)].map(([, id = '']) => decoded(id)));
}

const ids = new Map<string, ReadonlySet<string>>();
const hasId = (page: string, id: string): boolean => {
  const known = ids.get(page) ?? idsOf(page);
  ids.set(page, known);
  return known.has(id);
};

/** Links of a page that lead into the site, as addresses. */
function linksOf(page: string): URL[] {
  const hrefs = [...htmlOf(page).matchAll(/<a\s[^>]*?href="([^"]*)"/g)].map(([, href = '']) => decoded(href));
  return hrefs.map((href) => new URL(href, `http://site${page}`)).filter(({ host }) => host === 'site');
}

function isDead({ pathname, hash }: URL): boolean {
  const address = decodeURIComponent(pathname);
  if (!existsSync(fileOf(address))) return true;
  const id = decodeURIComponent(hash.slice(1));
  // The playground's settings are no heading.
  if (id === '' || address === '/playground.html') return false;
  return !hasId(address, id);
}

/** Files that a page loads when it opens: scripts, styles and its first image. Others are below, and loaded when they are reached. */
function loadedBy(page: string): string[] {
  const tags = [...htmlOf(page).matchAll(/<(?:script|img|link|source)\s[^>]*>/g)].map(([tag]) => tag);
  const later = tags.filter((tag) => tag.includes('loading="lazy"')).slice(1);
  const loading = tags
    .filter((tag) => !later.includes(tag))
    .filter((tag) => !tag.startsWith('<link') || /rel="(?:stylesheet|preload|modulepreload|icon)/.test(tag));
  const files = loading.flatMap((tag) => /(?:src|href)="([^"]+)"/.exec(tag)?.[1] ?? []).map(decoded);
  return [...new Set(files.filter((file) => !file.startsWith('data:')))];
}

/** As a server sends it: what is text is compressed. */
function sentBytes(address: string): number {
  const content = readFileSync(fileOf(address));
  return /\.(?:png|webp)$/.test(address) ? content.length : gzipSync(content).length;
}

const total = (page: string): number => [page, ...loadedBy(page)].reduce((sum, address) => sum + sentBytes(address), 0);

describe('the site', () => {
  it('has the pages of docs/, the reference of every subpath, and a home', () => {
    expect(all).toEqual(
      expect.arrayContaining([
        '/',
        '/playground.html',
        '/policies/',
        '/reference/',
        '/reference/headgate/simulator.html',
      ]),
    );
    expect(all.length).toBeGreaterThan(100);
  });

  it('has every page within reach of its navigation', () => {
    const lists = ['/getting-started.html', '/policies/', '/reference/'].flatMap(linksOf);
    const listed = new Set(['/', ...lists.map(({ pathname }) => decodeURIComponent(pathname))]);
    expect(all.filter((page) => !listed.has(page))).toEqual([]);
  });

  it('has every page as Markdown beside it, and a list of them for those who read no HTML', () => {
    const plain = (page: string): string => fileOf(page).replace(/html$/, 'md');
    expect(all.filter((page) => !existsSync(plain(page)))).toEqual([]);
    const links = [...readFileSync(fileOf('/llms.txt'), 'utf8').matchAll(/\]\(([^)]+)\)/g)].map(
      ([, link = '']) => link,
    );
    expect(links.length).toBeGreaterThan(100);
    expect(links.filter((link) => !existsSync(fileOf(link)))).toEqual([]);
  });

  it('weighs at most 150 kB a page, without the playground', () => {
    const sizes = all.map((page) => [page, total(page)] as const).sort(([, a], [, b]) => b - a);
    const figures = sizes.map(([, bytes]) => bytes);
    process.stdout.write(
      `Bytes of a page, compressed: median ${figures[figures.length >> 1]}, most ${sizes[0]?.join(' ')}\n`,
    );
    expect(sizes.filter(([, bytes]) => bytes > most)).toEqual([]);
  });

  it('loads nothing from other hosts', () => {
    const foreign = all.flatMap((page) => loadedBy(page).filter((file) => !file.startsWith('/')));
    expect(foreign).toEqual([]);
    const styles = [...new Set(all.flatMap(loadedBy))].filter((file) => file.endsWith('.css'));
    expect(styles.length).toBeGreaterThan(0);
    for (const file of styles) expect(readFileSync(fileOf(file), 'utf8')).not.toMatch(/url\(["']?https?:/);
  });
});

describe.each(all)('%s', (page) => {
  it('has no link that leads nowhere', () => {
    expect(
      linksOf(page)
        .filter(isDead)
        .map(({ pathname, hash }) => pathname + hash),
    ).toEqual([]);
  });
});
