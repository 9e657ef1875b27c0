import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writePlainPages } from '../../site/.vitepress/plain-pages.js';

const docs = fileURLToPath(new URL('../../docs/', import.meta.url));
const to = mkdtempSync(join(tmpdir(), 'headgate-plain-'));
const read = (name: string): string => readFileSync(join(to, name), 'utf8');

describe('the pages for readers that are no browsers', () => {
  const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.md') && !name.startsWith('reference/'));
  beforeAll(() =>
    writePlainPages({
      ...{ pages, from: docs, to, base: '/v1/', title: 'headgate', description: 'Flow control' },
      groups: [
        {
          text: 'Guides',
          items: [
            { text: 'Capacity', link: '/capacity' },
            { text: 'Policies', link: '/policies/' },
          ],
        },
        { items: [{ text: 'Concepts', link: '/concepts' }] },
        { text: 'Elsewhere', items: [{ text: 'Playground', link: 'https://example.com/' }] },
      ],
    }),
  );
  afterAll(() => rmSync(to, { recursive: true }));

  it('are all pages as Markdown, with links that lead somewhere on the site', () => {
    for (const page of pages) expect(read(page.replace('README.md', 'index.md')), page).not.toBe('');
    expect(read('concepts.md')).toContain('](policies/sheddable-eviction-filter.md)');
    expect(read('capacity.md')).toContain('https://github.com/headgate/headgate/blob/main/examples/gateway/README.md');
    expect(read('concepts.md')).toContain('](policies/index.md)');
  });

  it('have an index that says what each is about, and names nothing that is not there', () => {
    expect(read('llms.txt').split('\n')).toEqual([
      '# headgate',
      '',
      '> Flow control',
      '',
      '## Guides',
      '',
      '- [Capacity](/v1/capacity.md): How many requests run, how many wait, and how long?',
      '- [Policies](/v1/policies/index.md): Begin with the defaults and a detector.',
      '',
    ]);
  });
});
