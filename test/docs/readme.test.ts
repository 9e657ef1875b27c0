import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

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
  const snippets = snippetsOf('README.md');

  it('is read in a minute: at most 200 lines', () => {
    expect(readFileSync(new URL('README.md', root), 'utf8').split('\n').length).toBeLessThanOrEqual(200);
  });

  it('has ten lines that print what it says they print', async () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    await load('ten-lines', snippets.find(({ isRun }) => isRun)!.code);
    const printed = log.mock.calls.map(([tenant]) => tenant);
    expect(printed.slice(0, 3)).toEqual(['noisy', 'noisy', 'premium']);
    expect(printed).toHaveLength(8);
    expect(printed.indexOf('polite')).toBeLessThan(5);
  });

  it('has the first examples that the other pages have', () => {
    const [ten, middleware] = snippets.map(({ code }) => code);
    const codeOf = (page: string): string[] => snippetsOf(page).map(({ code }) => code);
    expect(codeOf('docs/index.md')[0]).toBe(ten);
    expect(codeOf('docs/getting-started.md')).toContain(middleware);
  });

  it('has a middleware example that starts', async () => {
    const middlewares = snippets.filter(({ isRun }) => !isRun);
    expect(middlewares).toHaveLength(1);
    for (const [i, { code }] of middlewares.entries())
      await load(`middleware-${i}`, code.replace('listen(8080)', 'listen(0).close()'));
  });
});

describe('docs/getting-started.md', () => {
  it('has an example without a framework that works as printed', async () => {
    const snippet = snippetsOf('docs/getting-started.md').find(({ isRun }) => isRun);
    assert(snippet);
    const server = "const fetch = async (_, { body }) => ({ text: async () => 'served ' + body });\n";
    const { handle } = (await load('embed', server + snippet.code)) as {
      handle(body: string, tenant: string): Promise<unknown>;
    };
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => handle(`r${i}`, 'tenant-a')));
    expect(answers).toEqual(Array.from({ length: 40 }, (_, i) => ({ status: 200, text: `served r${i}` })));
  });
});
