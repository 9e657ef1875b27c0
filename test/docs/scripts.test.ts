/** Every `npm run` that a page, a comment or a workflow names is there, and there are few to know. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { chosenTask, tasks } from '../../scripts/run-task.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const scripts: Readonly<Record<string, string>> = manifest.scripts;
const commandsOf: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = tasks;

/** Installed, built, or measured by somebody else. */
const others = /^(?:node_modules|dist|coverage|test-results|log|cache|reference|vectors|\.git|\.declarations)$/;

/** The texts that people read, as paths from the root. */
function textsBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (others.test(entry.name)) return [];
    if (entry.isDirectory()) return textsBelow(path);
    return /\.(?:md|mjs|ts|yml|vue)$/.test(entry.name) || path === join('.ci', 'run') ? [path] : [];
  });
}

/** What is wrong with the scripts that a text names. */
function faultsOf(text: string): string[] {
  const named = text.matchAll(/npm run(?: |\n[ */]*)(?:--silent )?([a-z][\w:-]*)(?: -- ([-\w]+))?/g);
  return [...named].flatMap(([command, name = '', argument]) => {
    if (scripts[name] === undefined) return [`${command}: no such script`];
    if (commandsOf[name] === undefined) return [];
    try {
      chosenTask(name, argument === undefined ? [] : [argument]);
      return [];
    } catch (error) {
      return [`${command}: ${(error as Error).message}`];
    }
  });
}

describe('the scripts of package.json', () => {
  it('are fewer than 30', () => {
    expect(Object.keys(scripts).length).toBeLessThan(30);
  });

  it('are all that anything names', () => {
    const texts = textsBelow('.').filter((path) => path !== join('test', 'docs', basename(import.meta.filename)));
    expect(texts.length).toBeGreaterThan(1000);
    expect(
      texts.flatMap((path) => faultsOf(readFileSync(join(root, path), 'utf8')).map((fault) => `${path}: ${fault}`)),
    ).toEqual([]);
  });

  it('name tasks that there are, and these name programs that there are', () => {
    for (const [name, command] of Object.entries(scripts)) {
      const [, kind, task] = /run-task\.mjs (\S+)(?: (\S+))?/.exec(command) ?? [];
      if (kind !== undefined) expect(name).toBe(task === undefined ? kind : `${kind}:${task}`);
      if (task !== undefined) expect(chosenTask(kind, [task]).commands.length).toBeGreaterThan(0);
    }
    const words = Object.values(commandsOf).flatMap((kind) => Object.values(kind).flat().join(' ').split(' '));
    const files = [...Object.values(scripts).join(' ').split(' '), ...words].filter((word) =>
      /^\w.*\/.*\.(?:mjs|ts|json)$/.test(word),
    );
    expect(files.length).toBeGreaterThan(30);
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });
});

describe('a task', () => {
  it('is chosen by its name, or is the one that has the name of its kind', () => {
    expect(chosenTask('bench', ['--quick'])).toEqual({ commands: tasks.bench.bench, rest: ['--quick'] });
    expect(chosenTask('bench', ['http', '--quick'])).toEqual({ commands: tasks.bench.http, rest: ['--quick'] });
  });

  it('that there is not is told with those that there are', () => {
    expect(() => chosenTask('docs', ['develop'])).toThrow(
      'npm run docs: expected one of dev, build, check, options, versions; got develop',
    );
    expect(() => chosenTask('docs', [])).toThrow(
      'npm run docs: expected one of dev, build, check, options, versions; got none',
    );
    expect(() => chosenTask('bench', ['toString'])).toThrow('got toString');
  });

  it('that is named wrongly in a text is a fault', () => {
    expect(faultsOf('`npm run nothing` and `npm run docs -- develop`, `npm run demo -- --write`')).toEqual([
      'npm run nothing: no such script',
      'npm run docs -- develop: npm run docs: expected one of dev, build, check, options, versions; got develop',
    ]);
  });
});
