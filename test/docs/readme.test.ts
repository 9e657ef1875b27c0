import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the snippets' imports resolve as a user's would, by the package's own name. */
const scratch = new URL('test-results/snippets/', root);

interface Snippet {
  readonly title: string;
  readonly code: string;
  readonly isRun: boolean;
}

function snippetsOf(file: string): Snippet[] {
  const text = readFileSync(new URL(file, root), 'utf8');
  return [...text.matchAll(/(<!-- run by .*?-->\n)?```js\n(.*?)```/gs)].map(([, marker, code = ''], i) => ({
    title: `${file}, snippet ${i + 1}`,
    code,
    isRun: marker !== undefined,
  }));
}

async function load(name: string, code: string): Promise<Record<string, unknown>> {
  const file = new URL(`${name}.mjs`, scratch);
  writeFileSync(file, code);
  return import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href);
}

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('the README', () => {
  it('has an embedding example that works as printed', async () => {
    const snippet = snippetsOf('README.md').find(({ isRun }) => isRun);
    assert(snippet);
    const server = "const fetch = async (_, { body }) => ({ text: async () => 'served ' + body });\n";
    const { handle } = (await load('embed', server + snippet.code)) as { handle(body: string, tenant: string): Promise<unknown> };
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => handle(`r${i}`, 'tenant-a')));
    expect(answers).toEqual(Array.from({ length: 40 }, (_, i) => ({ status: 200, text: `served r${i}` })));
  });

  it('has middleware examples that start', async () => {
    const middlewares = snippetsOf('README.md').filter(({ isRun }) => !isRun);
    expect(middlewares).toHaveLength(2);
    for (const [i, { code }] of middlewares.entries()) await load(`middleware-${i}`, code.replace('listen(8080)', 'listen(0).close()'));
  });
});

describe('docs/plugins.md', () => {
  for (const [i, { title, code, isRun }] of snippetsOf('docs/plugins.md').entries()) {
    it(`${title} works as printed`, async () => {
      expect(isRun).toBe(true);
      const { test } = (await load(`plugins-${i}`, code)) as { test(assertions: typeof assert): Promise<void> | void };
      await test(assert);
    });
  }
});
