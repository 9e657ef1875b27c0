/**
 * No block of the README and of docs/ goes unchecked. JavaScript and TypeScript are compiled by snippets.test.ts, or
 * are the files of a tutorial; files are loaded here, and commands exist. What a comment names another test for is
 * checked there. What programs print is text.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments, parseDocument } from 'yaml';
import { parseCommand } from '../../src/gateway/cli/arguments.js';
import { checkSource } from '../../src/gateway/cli/check-source.js';
import { loadScenario } from '../../src/simulator/index.js';
import { type Block, blocksOf, pages } from './pages.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: Record<string, string> };

const blocks = pages.flatMap(blocksOf);
const unmarked = blocks.filter(({ test }) => test === undefined);
const of = (...languages: readonly string[]): (readonly [string, Block])[] =>
  unmarked
    .filter(({ language }) => languages.includes(language))
    .map((block) => [`${block.page}:${block.line}`, block]);

/** The fewest lines that make a gateway file. */
const gateway = 'listen: { port: 8080 }\nupstreams: [{ id: gpu-0, url: "http://gpu-0:8000" }]\n';

/** A file, or the part of one that the page is about, as what it is part of. */
function faultsOf(yaml: string): readonly unknown[] {
  const keys = Object.keys(Object(parseDocument(yaml).toJS()));
  if (keys.includes('traffic')) return loadScenario(yaml).warnings;
  if (keys.includes('rule_files'))
    return parseDocument(yaml)
      .toJS()
      .rule_files.filter((name: string) => !existsSync(`${root}docs/grafana/${name}`));
  if (keys.includes('kind')) return checkSource(yaml).faults;
  if (keys.includes('upstreams')) {
    // A reader who copies a whole file is not told off by the first check of it.
    const { faults, warnings } = checkSource(yaml);
    return [...faults, ...warnings];
  }
  return checkSource(gateway + (yaml.startsWith('- ') ? `plugins:\n${yaml}` : yaml)).faults;
}

/** A line of a shell that names something which is not there. */
function problemOf(line: string): string | undefined {
  const words =
    line
      .replace(/\s+#.*$/, '')
      .replaceAll(/^(?:\w+=\S+ )+/g, '')
      .match(/'[^']*'|\S+/g) ?? [];
  const [program = '', ...rest] = words
    .map((word) => word.replace(/^node_modules\/\.bin\/|^npx$/, ''))
    .filter((word) => word !== '');
  switch (program) {
    case 'headgate': {
      const parsed = parseCommand(rest);
      return parsed.name === 'wrong' ? `${line}: ${parsed.problem}` : undefined;
    }
    case 'npm': {
      const [command, script = ''] = rest;
      if (command === 'run' && scripts[script] === undefined) return `${line}: no such script`;
      return ['run', 'ci', 'test', 'init', 'install'].includes(command ?? '')
        ? undefined
        : `${line}: no such command of npm`;
    }
    case 'node': {
      const file = rest.find((word) => word.startsWith('examples/'));
      return file === undefined || existsSync(root + file) ? undefined : `${line}: no such file`;
    }
    case 'docker': {
      const file = rest[rest.indexOf('-f') + 1];
      return rest[0] !== 'build' || existsSync(`${root}${file}`) ? undefined : `${line}: no such file`;
    }
    default:
      return ['mkdir', 'cd', 'curl'].includes(program) ? undefined : `${line}: an unknown program`;
  }
}

describe('every block', () => {
  it('is in a language that something checks, or is what a program prints', () => {
    const known = ['js', 'ts', 'yaml', 'sh', 'text', ''];
    const others = unmarked.filter(({ language }) => !known.includes(language));
    expect(others.map(({ page, language }) => `${page} ${language}`)).toEqual([]);
    expect(blocks.length).toBeGreaterThan(150);
  });

  it('that names a test is read by it', () => {
    const names = new Set(blocks.flatMap(({ page, test }) => (test === undefined ? [] : [`${test} ${page}`])));
    expect(names.size).toBeGreaterThan(10);
    for (const name of names) {
      const [test = '', page = ''] = name.split(' ');
      expect(existsSync(root + test), name).toBe(true);
      const text = readFileSync(root + test, 'utf8');
      // By its name, or by that of its folder.
      const isNamed = [/([\w-]+)\.md$/, /(\w+)\/[\w-]+\.md$/].some((path) =>
        text.includes(path.exec(page)?.[1] ?? page),
      );
      expect(isNamed, name).toBe(true);
    }
  });

  it.each(of('yaml'))('of YAML loads: %s', (_, { code }) => {
    expect(parseAllDocuments(code).flatMap(({ errors }) => errors)).toEqual([]);
    expect(faultsOf(code)).toEqual([]);
  });

  it.each(of('sh'))('of a shell names what is there: %s', (_, { code }) => {
    const lines = code.split('\n').flatMap((line) => line.split(' && '));
    expect(lines.filter((line) => line.trim() !== '').flatMap((line) => problemOf(line.trim()) ?? [])).toEqual([]);
  });
});
