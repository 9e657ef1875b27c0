/**
 * docs/recipes.md: every section shows what its program does, in the program's own lines. `npm run check -- examples`
 * runs the programs.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const page = read('docs/recipes.md');
const programs = readdirSync(new URL('examples/recipes/', root)).map((name) => `examples/recipes/${name}`);
const sections = page
  .split(/^## /m)
  .map((text) => ({ text, program: /\(\.\.\/(examples\/recipes\/[\w-]+\.mjs)\)/.exec(text)?.[1] ?? '' }))
  .filter(({ program }) => program !== '');

describe('the recipes', () => {
  it('have a section for every program', () => {
    expect(sections.map(({ program }) => program).sort()).toEqual(programs.sort());
  });

  it.each(sections)('show code that stands in $program', ({ text, program }) => {
    const blocks = [...text.matchAll(/```(?:js|yaml)\n(.*?)```/gs)].map(([, code = '']) => code);
    expect(blocks.length).toBeGreaterThan(0);
    for (const code of blocks) expect(read(program)).toContain(code);
  });

  it('have names of alerts that exist', () => {
    const alerts = read('docs/grafana/alerts.yaml').match(/- alert: \w+/g)!;
    expect(page).toContain(alerts.length === 18 ? 'eighteen rules' : `${alerts.length} rules`);
    const named = page.match(/Headgate\w+/g)!;
    expect(named.length).toBeGreaterThan(3);
    for (const name of named) expect(alerts).toContain(`- alert: ${name}`);
  });
});
