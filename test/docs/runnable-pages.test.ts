/** Pages whose every JavaScript snippet is a module that tests itself. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the snippets' imports resolve as a user's would, by the package's own name. */
const scratch = new URL('test-results/runnable-pages/', root);

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Each with the number of snippets that it has at least. */
const pages = [
  ['client', 3],
  ['fetch', 3],
  ['migrate', 4],
  ['shadow', 1],
  ['simulator', 1],
  ['testing', 2],
  ['troubleshooting', 2],
] as const;

describe.each(pages)('docs/%s.md', (page, fewest) => {
  const text = readFileSync(new URL(`docs/${page}.md`, root), 'utf8');
  const snippets = [...text.matchAll(/<!-- run by test\/docs\/runnable-pages\.test\.ts -->\n```js\n(.*?)```/gs)].map(
    ([, code = '']) => code,
  );

  it('has snippets, and none that is not run', () => {
    expect(snippets.length).toBeGreaterThanOrEqual(fewest);
    expect(text.match(/```js\n/g)).toHaveLength(snippets.length);
  });

  it.each(snippets.map((code, index) => [index + 1, code] as const))(
    'snippet %i works as printed',
    async (number, code) => {
      const file = new URL(`${page.replace('/', '-')}-${number}.mjs`, scratch);
      writeFileSync(file, code);
      const { test } = (await import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href)) as {
        test(assertions: typeof assert): Promise<void> | void;
      };
      await test(assert);
    },
  );

  it('has links that lead somewhere', () => {
    const links = [...text.matchAll(/\]\(([\w./-]+\.m(?:d|js))(?:#[\w-]+)?\)/g)].map(([, path]) => path as string);
    expect(links.length).toBeGreaterThan(1);
    for (const path of links)
      expect(() => readFileSync(new URL(path, new URL(`docs/${page}.md`, root))), path).not.toThrow();
  });
});
