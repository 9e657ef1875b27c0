/** Markdown as GitHub has it: links, and the anchors of headings. */
import type { MarkdownOptions } from 'vitepress';
import { siteLink } from './site-link.ts';

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

/** The anchor of a heading, as GitHub makes it. */
export function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .trim()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}
