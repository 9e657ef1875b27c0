/**
 * The checklist "Add a policy" of docs/architecture.md holds for every built-in fairness policy: the places it names,
 * and no other.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { defaultRegistry } from '../../src/index.js';
import { pageOf } from './policy-table.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const section = /## Add a policy\n(.*?)\n## /s.exec(read('docs/architecture.md'))?.[1] ?? '';
const places = [...section.matchAll(/^\* \[ \] `([^`]+)`/gm)].map(([, path]) => path as string);

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .map((path) => `src/${path.replaceAll('\\', '/')}`)
  .filter((path) => path.endsWith('.ts'))
  .sort();

/** The files whose code contains the words; comments do not count. */
function sourcesWith(words: string): string[] {
  return sources.filter((path) =>
    read(path)
      .replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, '')
      .includes(words),
  );
}

/** Where a policy's definition stands, and what it is called: one without parameters is its factory. */
function definitionOf(type: string): { readonly file: string; readonly name: string } {
  const found = sourcesWith(`'${type}'`).flatMap((file) => {
    const names = [/export const (\w+Plugin):/g, /export function (\w+)/g].flatMap((pattern) =>
      Array.from(read(file).matchAll(pattern), ([, name]) => name as string),
    );
    return names.filter((name) => listed(name) > 0).map((name) => ({ file, name }));
  });
  expect(found.length, type).toBeGreaterThan(0);
  return found[0] as (typeof found)[number];
}

/** How often the lists of built-in plugins have it. */
function listed(name: string): number {
  const [, lists = ''] = read('src/plugins/built-ins.ts').split('const builtIns');
  return lists.match(new RegExp(`\\b${name}\\b`, 'g'))?.length ?? 0;
}

describe('the checklist for a policy', () => {
  it('names two source files, one test, two docs, and the report that is made', () => {
    expect(places.map((path) => path.replace('<file>', 'src').replace('<test>', 'test').split(/[/.]/)[0])).toEqual([
      'src',
      'src',
      'test',
      'docs',
      'docs',
      'etc',
    ]);
  });

  it.each(defaultRegistry().types('fairness'))('is what %s is made of', (type) => {
    const { file, name } = definitionOf(type);
    const base = file.slice('src/'.length, -'.ts'.length);
    const filled = places.map((path) =>
      path.replace('<file>', `src/${base}`).replace('<test>', `test/${base}`).replace('<type>', pageOf(type)),
    );
    for (const path of filled) expect(existsSync(join(root, path)), path).toBe(true);
    expect(filled.filter((path) => path.startsWith('src/'))).toEqual([file, 'src/plugins/built-ins.ts']);
    expect(listed(name)).toBe(1);
  });

  it.each(defaultRegistry().types())('finds the definition of %s beside its code, and in one list', (type) => {
    const { file, name } = definitionOf(type);
    expect(file).toMatch(
      /^src\/(?:tiers\/[123]|gate\/(?:detectors|ceilings)|constraints\/|endpoints\/(?:pickers|filters)|admission|eviction)/,
    );
    expect(listed(name)).toBe(1);
    if (name.endsWith('Plugin')) expect(sourcesWith(name)).toEqual([file, 'src/plugins/built-ins.ts'].sort());
  });
});
