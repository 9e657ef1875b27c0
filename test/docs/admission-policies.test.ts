/** The pages of the admission policies: their examples work as printed, and their tables name every parameter. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defaultRegistry } from '../../src/index.js';

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the snippets' imports resolve as a user's would, by the package's own name. */
const scratch = new URL('test-results/admission-snippets/', root);

const pages = [...defaultRegistry().types('admission'), 'all-of', 'slo-classes', 'worker-admission', 'blis-policy-bundle'];

function read(page: string): string {
  return readFileSync(new URL(`docs/policies/${page}.md`, root), 'utf8');
}

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe.each(pages)('docs/policies/%s.md', (page) => {
  it('has an example that works as printed', async () => {
    const snippets = [...read(page).matchAll(/<!-- run by test\/docs\/admission-policies\.test\.ts -->\n```js\n(.*?)```/gs)];
    expect(snippets).toHaveLength(1);
    const file = new URL(`${page}.mjs`, scratch);
    writeFileSync(file, snippets[0]?.[1] ?? '');
    const { test } = (await import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href)) as {
      test(assertions: typeof assert): Promise<void> | void;
    };
    await test(assert);
  });
});

describe.each(defaultRegistry().types('admission'))('docs/policies/%s.md', (type) => {
  it('names every parameter that a file may hold', () => {
    let message = '';
    try {
      defaultRegistry().create(type, { '': 0 });
    } catch (error) {
      message = String(error);
    }
    expect(message).toMatch(/one of the keys|no keys/);
    for (const name of /one of the keys (.*?); got/.exec(message)?.[1]?.split(', ') ?? []) expect(read(type)).toContain(`\`${name}\``);
  });
});
