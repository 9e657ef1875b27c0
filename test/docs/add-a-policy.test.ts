/** The checklist "To add a built-in policy" is what the built-in policies are: every file that it names, and no other. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { defaultRegistry } from '../../src/index.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const checklist = read('docs/plugins.md').split('## To add a built-in policy')[1] ?? '';
const places = [...checklist.matchAll(/^\d\. `([^`]+)`/gm)].map(([, path]) => path as string);
const folders = [...checklist.matchAll(/`(src\/[\w/-]+)`/g)].map(([, path]) => path as string);

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => `src/${path}`);

/** The files whose code contains the words; comments do not count. */
function sourcesWith(words: string): string[] {
  const found = sources.filter((path) => {
    const code = read(path).replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, '');
    return code.includes(words);
  });
  return found.sort();
}

function definitionOf(type: string): { readonly file: string; readonly name: string } {
  const found = sources.flatMap((file) => {
    const code = read(file);
    const isNamed = code.includes(`'${type}'`);
    return isNamed ? [...code.matchAll(/export const (\w+Plugin):/g)].map(([, name]) => ({ file, name: name as string })) : [];
  });
  expect(found.length, type).toBeGreaterThan(0);
  return found[0] as (typeof found)[number];
}

describe('the checklist for a policy', () => {
  it('names two source files, two docs and one test', () => {
    expect(places.map((path) => path.split('/')[0])).toEqual(['src', 'src', 'docs', 'docs', 'test']);
    for (const folder of folders) expect(existsSync(join(root, folder)), folder).toBe(true);
  });

  it.each(defaultRegistry().types('fairness'))('is what %s is made of', (type) => {
    const { file, name } = definitionOf(type);
    const base = file.slice(file.lastIndexOf('/') + 1, -'.ts'.length);
    const expected = places.map((path) => path.replace('NAME-fairness-policy', type).replace('NAME', base));
    for (const path of expected) expect(existsSync(join(root, path)), path).toBe(true);
    expect(expected[0]).toBe(file);
    expect(sourcesWith(name)).toEqual(expected.filter((path) => path.startsWith('src/')).sort());
    expect(read(expected[3] as string)).toContain(`[${type}](${type}.md)`);
  });

  it.each(defaultRegistry().types())('finds the definition of %s beside its code, and in one list', (type) => {
    const { file, name } = definitionOf(type);
    expect(folders.some((folder) => file.startsWith(`${folder}/`))).toBe(true);
    expect(sourcesWith(name)).toEqual([file, 'src/plugins/built-ins.ts'].sort());
  });
});
