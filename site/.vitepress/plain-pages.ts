/**
 * The pages for readers that are no browsers, such as coding assistants: every page as Markdown beside its HTML, and
 * `llms.txt`, a list of them with what each is about (https://llmstxt.org).
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { siteLink } from './site-link.ts';

interface Group {
  readonly text?: string;
  readonly items?: readonly { readonly text?: string; readonly link?: string }[];
}

interface PlainPages {
  /** Files below `from`, with `/`. */
  readonly pages: readonly string[];
  readonly from: string;
  readonly to: string;
  /** Of the site, with a slash at both ends. */
  readonly base: string;
  readonly title: string;
  readonly description: string;
  /** Lists of pages, each by its address on the site; those without a heading are left out. */
  readonly groups: readonly Group[];
}

export function writePlainPages({ pages, from, to, base, title, description, groups }: PlainPages): void {
  const texts = new Map<string, string>();
  for (const page of pages) {
    const file = join(from, page);
    const text = readFileSync(file, 'utf8').replaceAll(
      /\]\(([^)\s]+)\)/g,
      (_, href: string) => `](${siteLink(href, file)})`,
    );
    const name = page.replace(/README\.md$/, 'index.md');
    texts.set(name, text);
    mkdirSync(dirname(join(to, name)), { recursive: true });
    writeFileSync(join(to, name), text);
  }
  const lists = groups.flatMap(({ text, items = [] }) => {
    const rows = items.flatMap(({ text: heading = '', link = '' }) => {
      const name = `${link.slice(1)}${link.endsWith('/') ? 'index' : ''}.md`;
      const page = texts.get(name);
      return page === undefined ? [] : [`- [${heading}](${base}${name})${about(page)}`];
    });
    return text === undefined || rows.length === 0 ? [] : [`## ${text}\n\n${rows.join('\n')}\n`];
  });
  writeFileSync(join(to, 'llms.txt'), [`# ${title}\n`, `> ${description}\n`, ...lists].join('\n'));
}

/** `: ` and the first sentence of a page. */
function about(page: string): string {
  const prose = page.split('\n\n').find((paragraph) => /^[\p{L}`*[]/u.test(paragraph) && !paragraph.startsWith('* '));
  const [sentence] =
    /^.*?[.?!](?= |$)/.exec(prose?.replaceAll(/\[([^\]]*)\]\([^)]*\)|\n/g, (_, text) => text ?? ' ') ?? '') ?? [];
  return sentence === undefined ? '' : `: ${sentence}`;
}
