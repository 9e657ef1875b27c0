/**
 * Markdown as GitHub has it. Pages link each other, and files of the repository, by relative paths: what the site does
 * not have is linked where it is kept.
 */
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { MarkdownOptions } from 'vitepress';

const root = fileURLToPath(new URL('../../', import.meta.url));
const repository = 'https://github.com/headgate/headgate';

export type Markdown = Parameters<NonNullable<MarkdownOptions['config']>>[0];

export function linksToSources(markdown: Markdown): void {
  markdown.core.ruler.push('links-to-sources', ({ tokens, env }) => {
    const page: string = env.realPath ?? env.path;
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null;
      if (href !== null) token.attrSet('href', siteLink(href, page));
    }
  });
}

/** `href` as the site has it, on the page whose file is `page`. */
function siteLink(href: string, page: string): string {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const file = fileURLToPath(new URL(path, `file://${page}`));
  const isPage = file.startsWith(`${root}docs/`) && file.endsWith('.md');
  // A README is the first page of its folder.
  if (isPage) return href.replace(/README\.md/, 'index.md');
  // The generated reference is not there before it is made.
  if (!existsSync(file)) return href;
  const kind = statSync(file).isDirectory() ? 'tree' : 'blob';
  return `${repository}/${kind}/main/${file.slice(root.length)}${anchor === undefined ? '' : `#${anchor}`}`;
}

/** The anchor of a heading, as GitHub makes it. */
export function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .trim()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}
