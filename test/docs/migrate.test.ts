/** docs/migrate: the files of its pages load, without faults and without warnings. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/index.js';
import { loadGatewayConfig } from '../../src/gateway/index.js';

const folder = new URL('../../docs/migrate/', import.meta.url);
const pages = readdirSync(folder).sort();
const read = (page: string): string => readFileSync(new URL(page, folder), 'utf8');
const files = pages.flatMap((page) =>
  [...read(page).matchAll(/<!-- loaded by test\/docs\/migrate\.test\.ts -->\n```yaml\n(.*?)```/gs)].map(
    ([, text = '']) => [page, text] as const,
  ),
);

describe('the pages of migration', () => {
  it('have an outline in common: what is different, and what is lost', () => {
    expect(pages).toHaveLength(4);
    for (const page of pages) expect(read(page), page).toMatch(/^## What is lost$/m);
  });

  it('have files that are loaded, all of them', () => {
    expect(files.map(([page]) => page)).toEqual(['litellm.md', 'llm-d.md', 'llm-d.md']);
    expect(pages.flatMap((page) => read(page).match(/```ya?ml\n/g) ?? [])).toHaveLength(files.length);
  });

  it.each(files)('%s: its file loads', (_, text) => {
    if (text.startsWith('listen:')) expect(loadGatewayConfig(text).warnings).toEqual([]);
    else expect(loadConfig(text)).toMatchObject({ enabled: true, warnings: [] });
  });
});
