/**
 * docs/recipes: every page shows what its program does, in the program's own lines. `npm run check -- examples` runs the
 * programs.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const folder = new URL('docs/recipes/', root);
const read = (url: URL): string => readFileSync(url, 'utf8');
const pages = readdirSync(folder).sort();
const programOf = (page: string): string =>
  /\(\.\.\/\.\.\/(examples\/recipes\/[\w-]+\.mjs)\)/.exec(read(new URL(page, folder)))?.[1] ?? '';

describe.each(pages)('docs/recipes/%s', (page) => {
  const text = read(new URL(page, folder));

  it('has code that stands in its program', () => {
    const program = read(new URL(programOf(page), root));
    const blocks = [...text.matchAll(/```js\n(.*?)```/gs)].map(([, code = '']) => code);
    expect(blocks.length).toBeGreaterThan(0);
    for (const code of blocks) expect(program).toContain(code);
  });

  it('has links that lead somewhere', () => {
    const links = [...text.matchAll(/\]\(([\w./-]+)(?:#[\w-]+)?\)/g)].map(([, path = '']) => path);
    expect(links.filter((path) => !existsSync(new URL(path, folder)))).toEqual([]);
  });
});

describe('the recipes', () => {
  it('have a page for every program, and names of alerts that exist', () => {
    const programs = readdirSync(new URL('examples/recipes/', root)).map((name) => `examples/recipes/${name}`);
    expect(pages.map(programOf).sort()).toEqual(programs.sort());
    const alerts = read(new URL('docs/grafana/alerts.yaml', root)).match(/- alert: \w+/g)!;
    expect(read(new URL('alerts-that-matter.md', folder))).toContain(
      alerts.length === 18 ? 'eighteen rules' : `${alerts.length} rules`,
    );
    for (const [name] of read(new URL('alerts-that-matter.md', folder)).matchAll(/Headgate\w+/g))
      expect(alerts).toContain(`- alert: ${name}`);
  });
});
