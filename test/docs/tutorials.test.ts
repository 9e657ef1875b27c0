/** The tutorials: the files that a reader makes, in the order of the section, do what it says. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { freePort } from '../support/free-port.js';

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the files find it by its name. */
const scratch = new URL('test-results/tutorials/', root);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface File {
  readonly name: string;
  readonly code: string;
}

function filesOf(page: string, section: string): File[] {
  const sections = readFileSync(new URL(`docs/${page}.md`, root), 'utf8').split(/^## /m);
  const text = sections.find((each) => each.startsWith(`${section}\n`))!;
  const files = [...text.matchAll(/<!-- file: (\S+) -->\n```js\n(.*?)```/gs)].map(([, name = '', code = '']) => ({
    name,
    code,
  }));
  // Every block is a file, and says so to those who paste it.
  expect(text.match(/```js\n/g)).toHaveLength(files.length);
  for (const { name, code } of files) expect(code.split('\n')[0]).toBe(`// ${name}`);
  return files;
}

/** A folder with the files; later ones replace earlier ones of their name. */
function folder(name: string, files: readonly File[], change: (code: string) => string = (code) => code) {
  const path = new URL(`${name}/`, scratch);
  mkdirSync(path, { recursive: true });
  for (const file of files) writeFileSync(new URL(file.name, path), change(file.code));
  return (file: string) =>
    import(/* @vite-ignore */ pathToFileURL(fileURLToPath(new URL(file, path))).href) as Promise<
      Record<string, unknown>
    >;
}

describe('a first protected route', () => {
  const [argv] = [process.argv];
  afterEach(() => {
    process.argv = argv;
    vi.restoreAllMocks();
  });

  it('serves the polite tenant last without flow control, and long before the end with it', async () => {
    const [model, gateway] = [await freePort(), await freePort()];
    // On other ports; the answers' order is what counts. Servers end with the process of the test.
    const load = (code: string): string => code.replaceAll('8000', String(model)).replaceAll('8080', String(gateway));
    const files = filesOf('getting-started', 'A first protected route');
    const run = folder('first-route', [...files, { name: 'load-2.mjs', code: files.at(-1)?.code ?? '' }], load);
    await run('model-server.mjs');
    await run('gateway.mjs');
    const lines: string[] = [];
    vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
    process.argv = ['node', 'load.mjs', '/plain'];
    await run('load.mjs');
    process.argv = ['node', 'load.mjs', '/v1'];
    await run('load-2.mjs');
    const last = lines
      .filter((line) => line.startsWith('polite'))
      .map((line) => Number(/number (\d+) of 44/.exec(line)?.[1]));
    expect(last).toHaveLength(2);
    expect(last[0]).toBe(44);
    expect(last[1]).toBeLessThan(44);
  });
});

describe('a policy of your own', () => {
  const files = filesOf('plugins', 'A policy, step by step');
  const tests = files.filter(({ name }) => name.endsWith('.test.mjs'));
  /** Collects what `node:test` would run. */
  const collecting = (code: string): string =>
    code.replace(
      "import { test } from 'node:test';",
      'export const tests = [];\nconst test = (name, run) => tests.push({ name, run });',
    );
  type Tests = readonly { readonly name: string; readonly run: () => Promise<void> | void }[];

  async function failures(name: string, chosen: readonly File[]): Promise<string[]> {
    const run = folder(name, chosen, collecting);
    const failed: string[] = [];
    for (const file of tests) {
      for (const each of (await run(file.name)).tests as Tests) {
        try {
          await each.run();
        } catch (error) {
          failed.push(`${each.name}: ${String(error)}`);
        }
      }
    }
    return failed;
  }

  it('passes all tests but the one for which it is repaired', async () => {
    const versions = files.filter(({ name }) => name === 'fewest-waiting.mjs');
    expect([versions.length, tests.length]).toEqual([2, 3]);
    const [first, repaired] = versions as [File, File];
    const before = await failures('own-policy-first', [...files.filter(({ name }) => name !== first.name), first]);
    expect(before).toEqual([expect.stringContaining('bulk was served 0 times of the first 40')]);
    expect(await failures('own-policy', [...files.filter(({ name }) => name !== first.name), repaired])).toEqual([]);
  });

  it('lets small tenants wait less than under round robin, as the table says', async () => {
    const run = folder(
      'own-policy-simulated',
      files.filter(({ code }) => !code.includes('firstActive')),
    );
    const { waits } = (await run('simulate.mjs')) as { waits(fairness: unknown): Record<string, unknown>[] };
    const { fewestWaiting } = (await run('fewest-waiting.mjs')) as { fewestWaiting: unknown };
    const { roundRobin } = await import('../../src/index.js');
    const table = [roundRobin, fewestWaiting]
      .map(waits)
      .map((rows) => rows.map((row) => [row['p50 wait, s'], row['p99 wait, s']]));
    expect(table).toEqual([
      [
        [20.76, 29.99],
        [0.19, 1.24],
        [0.19, 1.26],
      ],
      [
        [21.16, 29.97],
        [0.06, 0.5],
        [0.06, 0.64],
      ],
    ]);
  });

  it('is named in a file', async () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    const { flow } = (await folder('own-policy-configured', files)('configured.mjs')) as {
      flow: { close(): Promise<void> };
    };
    expect(log).toHaveBeenCalledWith([0], 'fewest-waiting');
    log.mockRestore();
    await flow.close();
  });
});
