/**
 * docs/architecture.md: the folders, files, functions and places that it names are there, and no folder is missing from
 * it. docs/decisions.md names nothing that is gone either.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/architecture.md', root), 'utf8');
const sections = new Map(page.split(/^## /m).map((text) => [text.slice(0, text.indexOf('\n')), text]));
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const codeIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

/** Files and folders that a page names, without patterns and gaps to fill in. */
const pathsIn = (text: string): string[] =>
  codeIn(text).filter((code) => /^(?:src|test|docs|scripts|examples|etc)\/[^<>*{}]*$/.test(code));

/** Cells of the tables of a section, without their heads. */
function rowsOf(section: string): string[][] {
  const rows = [...(sections.get(section) ?? '').matchAll(/^\|(.*)\|$/gm)].map(([, row = '']) =>
    row.split('|').map((cell) => cell.trim()),
  );
  return rows.filter(
    ([first = '', second]) => !/^-+$/.test(second ?? '') && !['folder', 'step', 'end'].includes(first),
  );
}

/** The folders of src that have files of their own, and what stands beside them. */
function folders(): string[] {
  const all = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' }).map(
    (path) => `src/${path.replaceAll('\\', '/')}`,
  );
  const files = all.filter((path) => statSync(fileURLToPath(new URL(path, root))).isFile());
  const holders = files.map((path) => path.slice(0, path.lastIndexOf('/'))).filter((folder) => folder !== 'src');
  return [...new Set([...holders, 'src/index.ts'])].sort();
}

interface Checklist {
  readonly title: string;
  readonly items: readonly string[];
  readonly examples: readonly Readonly<Record<string, string>>[];
}

const checklists: readonly Checklist[] = [...sections]
  .filter(([title]) => title.startsWith('Add '))
  .map(([title, text]) => ({
    title,
    items: [...text.matchAll(/^\* \[ \] (.*)$/gm)].map(([, item = '']) => item),
    examples: [...text.matchAll(/<!-- example: (.*) -->/g)].map(([, pairs = '']) =>
      Object.fromEntries(pairs.split(' ').map((pair) => pair.split('=') as [string, string])),
    ),
  }));

const filledIn = checklists.flatMap(({ title, items, examples }) =>
  examples.flatMap((example) =>
    items.map((item) => {
      const filled = item.replaceAll(/<(\w+)>/g, (_, name: string) => example[name] ?? `no ${name} in the example`);
      const [path = '', ...names] = codeIn(filled);
      return { title: `${title}: ${path}`, path, names };
    }),
  ),
);

/**
 * Code in an item that names something else than a part of the file: commands, tags, members that every implementation
 * has.
 */
const elsewhere = /^npm run |^npx vitest |^@|^create$|^ResolvedOptions$|^FlowControllerOptions$|^src\/|^heard\./;

describe('docs/architecture.md', () => {
  it('has every folder of src in its table, and no other', () => {
    const named = rowsOf('The folders').flatMap(([first = '']) => codeIn(first));
    const missing = folders().filter(
      (folder) => !named.some((name) => name === folder || (folder.startsWith(`${name}/`) && isLeaf(name))),
    );
    expect(missing).toEqual([]);
    expect(named.filter((name) => !existsSync(new URL(name, root)))).toEqual([]);
  });

  it('lists folders in the order of the layers', () => {
    const tops = rowsOf('The folders').flatMap(([first = '']) => codeIn(first).map((path) => path.split('/')[1] ?? ''));
    const below = ['base', 'tiers', 'endpoints', 'gate', 'constraints', 'admission', 'eviction'];
    const layers = [...below, 'plugins', 'core', 'index.ts'];
    expect([...new Set(tops)].slice(0, layers.length)).toEqual(layers);
    expect(tops.at(-1)).toBe('gateway');
  });

  it('walks through files and functions that exist', () => {
    const steps = rowsOf('One request, file by file').filter((row) => row.length === 3);
    expect(steps.length).toBeGreaterThan(20);
    const gone = steps
      .map(([, file = '', called = '']) => ({ file: codeIn(file)[0] ?? '', called: codeIn(called)[0] ?? '' }))
      .filter(
        ({ file, called }) => !new RegExp(`\\b${called}\\(`).test(existsSync(new URL(file, root)) ? read(file) : ''),
      );
    expect(gone).toEqual([]);
  });

  it('shows at most fourteen files for a request that need not wait', () => {
    const [table = ''] = /\| step \|.*?\n\n/s.exec(sections.get('One request, file by file') ?? '') ?? [];
    const files = new Set(codeIn(table).filter((code) => code.endsWith('.ts')));
    expect(files.size).toBeLessThanOrEqual(14);
  });

  it('names no file or folder that is not there', () => {
    const paths = pathsIn(page);
    expect(paths.length).toBeGreaterThan(60);
    expect(paths.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });

  it('has checklists with examples, which are as long as they say, and short', () => {
    const files = checklists.map(({ title, items }) => [title, items.length]);
    expect(files).toEqual([
      ['Add a policy', 6],
      ['Add a detector', 6],
      ['Add a hook of seats', 3],
      ['Add an adapter', 10],
      ['Add an option', 7],
      ['Add an option of gateway files', 5],
      ['Add an event', 5],
    ]);
    const words = ['Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine', 'Ten'];
    for (const { title, items, examples } of checklists) {
      expect(examples.length, title).toBeGreaterThan(1);
      expect(sections.get(title)).toMatch(new RegExp(`^${words[items.length - 3]} files`, 'm'));
    }
  });

  it.each(filledIn)('$title has what the list says', ({ path, names }) => {
    const text = read(path);
    expect(names.filter((name) => !elsewhere.test(name) && !text.includes(name))).toEqual([]);
  });
});

describe('docs/decisions.md', () => {
  it('names no file or folder that is not there', () => {
    const paths = pathsIn(read('docs/decisions.md'));
    expect(paths.length).toBeGreaterThan(10);
    expect(paths.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });
});

/** True for a folder without a row for the folders inside it. */
function isLeaf(name: string): boolean {
  return !rowsOf('The folders').some(([first = '']) => codeIn(first).some((other) => other.startsWith(`${name}/`)));
}
