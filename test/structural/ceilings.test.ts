/**
 * Sources have ceilings. What is above one today is listed with its size, and cannot grow; what has shrunk must be
 * listed with less, or not at all. Nobody raises a number: a change that needs more room removes something first.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { exportedNames, type Part, sizeOf } from './source-size.js';

const src = fileURLToPath(new URL('../../src/', import.meta.url));
const read = (file: string): string => readFileSync(src + file, 'utf8');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
const sizes = files
  .filter((file) => file.endsWith('.ts') && !/built-(?:page|scripts)\.ts$/.test(file))
  .map((file) => sizeOf(file.split(sep).join('/'), read(file)));
const linesOfLua = files.filter((file) => file.endsWith('.lua')).map((file) => read(file).split('\n').length - 1);
const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

/** Above this, the header of a file says why it is not two. */
const linesWithoutReason = 300;

interface Ceiling {
  readonly most: number;
  readonly parts: readonly Part[];
  /** What is above the ceiling, with the size that it has. */
  readonly above: Readonly<Record<string, number>>;
}

const ceilings: Readonly<Record<string, Ceiling>> = {
  'lines of a file': {
    most: 500,
    parts: sizes.map(({ file, lines }) => ({ name: file, size: lines })),
    above: {},
  },
  'members of a class': {
    most: 40,
    parts: sizes.flatMap(({ classMembers }) => classMembers),
    above: {},
  },
  'lines of a function': {
    most: 80,
    parts: sizes.flatMap(({ functionLines }) => functionLines),
    above: {},
  },
  'paths through a function': {
    most: 25,
    parts: sizes.flatMap(({ functionPaths }) => functionPaths),
    above: {},
  },
  'names that the root exports': {
    most: 120,
    parts: [{ name: 'index.ts', size: exportedNames('index.ts', read).length }],
    above: {},
  },
  'lines of all sources': {
    most: 54_000,
    parts: [{ name: 'src', size: sum(sizes.map(({ lines }) => lines)) }],
    above: { src: 59_900 },
  },
  'lines of Lua': { most: 140, parts: [{ name: 'src', size: sum(linesOfLua) }], above: {} },
  'casts for each 1,000 lines of sources, in all': {
    most: (4 * sum(sizes.map(({ lines }) => lines))) / 1000,
    parts: [{ name: 'src', size: sum(sizes.map(({ casts }) => casts)) }],
    above: { src: 345 },
  },
};

/** What is above its ceiling, above what is listed, or listed higher than it is. A few lines less are no fault. */
function faultsOf({ most, parts, above }: Ceiling): string[] {
  const real = new Map<string, number>();
  for (const { name, size } of parts) real.set(name, Math.max(size, real.get(name) ?? 0));
  const grown = [...real]
    .filter(([name, size]) => size > (above[name] ?? most))
    .map(([name, size]) => `${name}: ${size}, and at most ${above[name] ?? most} is allowed`);
  const shrunk = Object.entries(above)
    .filter(([name, listed]) => (real.get(name) ?? 0) <= Math.max(most, 0.95 * listed))
    .map(([name, listed]) => `${name}: ${real.get(name) ?? 'gone'}, so lower the ${listed} that is listed`);
  return [...grown, ...shrunk];
}

describe('sources stay below their ceilings', () => {
  it.each(Object.keys(ceilings))('%s', (name) => {
    expect(faultsOf(ceilings[name] as Ceiling)).toEqual([]);
  });

  it('and a file of more than 300 lines says in its header why', () => {
    const withoutReason = sizes.filter(
      ({ lines, header }) =>
        lines > linesWithoutReason && !/(?:Longer|Larger) than most files, because \w/.test(header),
    );
    expect(withoutReason.map(({ file }) => file)).toEqual([]);
  });
});

describe('the ceilings', () => {
  it('are told from what is larger than they are, grew, shrank or went', () => {
    const parts = [
      { name: 'small', size: 10 },
      { name: 'large', size: 11 },
      { name: 'listed', size: 20 },
      { name: 'grown', size: 21 },
      { name: 'shrunk', size: 18 },
      { name: 'repaired', size: 10 },
    ];
    const above = { listed: 20, grown: 20, shrunk: 20, repaired: 11, gone: 20 };
    expect(faultsOf({ most: 10, parts, above })).toEqual([
      'large: 11, and at most 10 is allowed',
      'grown: 21, and at most 20 is allowed',
      'shrunk: 18, so lower the 20 that is listed',
      'repaired: 10, so lower the 11 that is listed',
      'gone: gone, so lower the 20 that is listed',
    ]);
  });

  it('count members, lines, paths, casts and exports', () => {
    const text = `/** Decides
 * something. */
export class Owner {
  readonly own = [1] as const;
  constructor() {}
  get first(): number { return this.own[0]; }
  choose(a: number, b?: number): unknown {
    if (a > 1 && b !== undefined) return a as unknown as string;
    const later = (): number => b ?? 0;
    for (const _ of this.own) later();
    return a > 0 ? later : (null as never);
  }
}
declare function bodiless(): void;
`;
    const { lines, header, casts, classMembers, functionLines, functionPaths } = sizeOf('a.ts', text);
    expect({ lines, header, casts }).toEqual({ lines: 14, header: '/** Decides something. */', casts: 3 });
    expect(classMembers).toEqual([{ name: 'a.ts Owner', size: 4 }]);
    const named = (parts: readonly Part[]) => parts.map(({ name, size }) => `${name} ${size}`);
    expect(named(functionLines)).toEqual(['a.ts constructor 1', 'a.ts first 1', 'a.ts later 1', 'a.ts choose 6']);
    expect(named(functionPaths)).toEqual(['a.ts constructor 1', 'a.ts first 1', 'a.ts later 2', 'a.ts choose 5']);
    const modules: Record<string, string> = {
      'index.ts': `export { a, type B } from './c.js';\nexport type { D as E } from './c.js';\nexport * from './c/all.js';`,
      'c/all.ts': `export const f = 1, g = 2;\nexport interface H {}\nfunction own() {}\nexport * from '../i.js';`,
      'i.ts': 'export class I {}',
    };
    expect(exportedNames('index.ts', (module) => modules[module] ?? '').join()).toBe('a,B,E,f,g,H,I');
  });
});
