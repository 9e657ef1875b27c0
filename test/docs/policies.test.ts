/**
 * docs/policies/: every built-in plugin has a page, every page an example that works as printed, and a table with every
 * parameter.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defaultRegistry } from '../../src/index.js';
import { pageOf, withPolicyTable } from './policy-table.js';

const root = new URL('../../', import.meta.url);
const folder = new URL('docs/policies/', root);
/** Inside the package, so that the snippets' imports resolve as a user's would, by the package's own name. */
const scratch = new URL('test-results/policy-snippets/', root);

const pages = readdirSync(folder)
  .filter((file) => file.endsWith('.md') && file !== 'README.md')
  .map((file) => file.slice(0, -'.md'.length));
const types = defaultRegistry().types();

function read(page: string): string {
  return readFileSync(new URL(`${page}.md`, folder), 'utf8');
}

/** What a file may hold as parameters of a plugin, as its error tells. */
function parametersOf(type: string): string[] {
  let message = '';
  try {
    defaultRegistry().create(type, { '': 0 });
  } catch (error) {
    message = String(error);
  }
  expect(message).toMatch(/one of the keys|no keys|no parameters/);
  return /one of the keys (.*?); got/.exec(message)?.[1]?.split(', ') ?? [];
}

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('docs/policies', () => {
  it('has a page for every type', () => {
    expect(types.length).toBeGreaterThan(25);
    expect(types.filter((type) => !pages.includes(pageOf(type)))).toEqual([]);
  });

  it('has a table of all policies, made of their pages', async () => {
    // `npx vitest run test/docs/policies.test.ts -u` writes it.
    const page = fileURLToPath(new URL('README.md', folder));
    await expect(withPolicyTable(read('README'), defaultRegistry(), read)).toMatchFileSnapshot(page);
  });

  it('links every page from its first one, and nothing that is not there', () => {
    const links = [...read('README').matchAll(/\]\(([\w-]+)\.md(?:#[\w-]+)?\)/g)].map(([, page]) => page as string);
    expect([...new Set(links)].sort()).toEqual([...pages].sort());
  });
});

describe.each(pages)('docs/policies/%s.md', (page) => {
  it('has an example that works as printed', async () => {
    const snippets = [...read(page).matchAll(/<!-- run by test\/docs\/policies\.test\.ts -->\n```js\n(.*?)```/gs)];
    expect(snippets.length).toBeGreaterThan(0);
    for (const [index, [, code = '']] of snippets.entries()) {
      const file = new URL(`${page}-${index}.mjs`, scratch);
      writeFileSync(file, code);
      const { test } = (await import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href)) as {
        test(assertions: typeof assert): Promise<void> | void;
      };
      await test(assert);
    }
  });
});

describe.each(types)('docs/policies/%s.md', (type) => {
  it('has every parameter in a table', () => {
    for (const name of parametersOf(type)) expect(read(pageOf(type))).toMatch(new RegExp(`^\\|.*\`${name}\``, 'm'));
  });
});
