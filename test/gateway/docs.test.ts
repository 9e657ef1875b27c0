/** docs/gateway.md: its snippets work, its file is right, and its tables name every error. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { importPlugins, loadGatewayConfig } from '../../src/gateway/index.js';
import { FlowConfigError } from '../../src/index.js';
import { startUpstream } from './support/upstream.js';

const root = new URL('../../', import.meta.url);
const scratch = new URL('test-results/gateway-snippets/', root);
const page = readFileSync(new URL('docs/gateway.md', root), 'utf8');
const options = readFileSync(new URL('docs/file-options.md', root), 'utf8');

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function blocks(language: string): string[] {
  return [...page.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, block = '']) => block);
}

/** The keys that the message of an unknown one lists. */
function keysOf(file: object): Map<string, string[]> {
  try {
    loadGatewayConfig(file);
  } catch (error) {
    assert(error instanceof FlowConfigError);
    const unknown = error.issues.filter(({ got }) => got === 'an unknown key');
    return new Map(
      unknown.map(({ path, expected }) => [path, /one of the keys (.*)/.exec(expected)?.[1]?.split(', ') ?? []]),
    );
  }
  return new Map();
}

describe('docs/gateway.md', () => {
  it('has a file that is right', () => {
    for (const yaml of blocks('yaml')) expect(loadGatewayConfig(yaml).upstreams).toHaveLength(2);
  });

  it('names plugins of one’s own in a file that is right', async () => {
    const [yaml = ''] = blocks('yml');
    const policies = `import { definePlugin, fcfs } from 'headgate';
      import * as z from 'zod';
      const parameters = z.object({ patience: z.number().min(0) });
      export default definePlugin({ kind: 'ordering', type: 'my-ordering-policy', parameters, create: () => ({ ...fcfs(), type: 'my-ordering-policy' }) });`;
    writeFileSync(new URL('policies.mjs', scratch), policies);
    const text = `listen: { port: 0 }\nupstreams: [{ id: a, url: "http://a" }]\n${yaml}`;
    const registry = await importPlugins(text, { from: fileURLToPath(scratch) });
    expect(loadGatewayConfig(text, { registry }).upstreams).toHaveLength(1);
  });

  it('has a snippet that works as printed', async () => {
    const [code = ''] = blocks('js');
    const file = new URL('snippet.mjs', scratch);
    writeFileSync(file, code);
    const { test } = await import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href);
    await test(assert, (await startUpstream()).url);
  });

  it('names every section and every field of the file', () => {
    const sections = ['admin', 'scrape', 'health', 'timeouts', 'limits', 'retry', 'models', 'drain', 'log'];
    const wrong = { x_: 0 };
    const keys = keysOf({
      ...wrong,
      ...Object.fromEntries(sections.map((section) => [section, wrong])),
      listen: wrong,
      upstreams: [wrong],
      auth: { ...wrong, keys: [wrong], anonymous: wrong },
    });
    expect(keys.size).toBe(sections.length + 6);
    for (const [path, names] of keys) {
      const at = path.replace(/x_$/, '').replaceAll('[0]', '[]').replace('anonymous', 'keys[]');
      for (const name of names)
        expect(options).toMatch(new RegExp(`^(?:\\||###) \`${at}${name}\``.replace('[]', '\\[\\]'), 'm'));
    }
  });

  it('names every error of the gateway, and that of Envoy those of the picker', () => {
    const folder = new URL('src/gateway/', root);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const codesOf = (names: readonly string[]): (readonly [status: string, code: string])[] =>
      names
        .map((name) => readFileSync(new URL(name, folder), 'utf8'))
        .flatMap((source) =>
          [...source.matchAll(/new ApiError\(\s*(\d+),\s*'(\w+)'/g)].map(
            ([, status = '', code = '']) => [status, code] as const,
          ),
        );
    const envoy = readFileSync(new URL('docs/envoy.md', root), 'utf8');
    const ofPicker = codesOf(files.filter((name) => name.startsWith('epp/')));
    expect(ofPicker.length).toBeGreaterThan(1);
    for (const [status, code] of ofPicker) expect(envoy).toMatch(new RegExp(`${status}.*\`${code}\``));
    const codes = codesOf(files.filter((name) => !name.startsWith('epp/')));
    const known = codes.filter(
      ([status, code]) => status !== '500' && !code?.startsWith('no_') && code !== 'upstream_overloaded',
    );
    expect(known.length).toBeGreaterThan(8);
    for (const [status, code] of known) expect(page).toMatch(new RegExp(`^\\| [\\d, ]*${status}.*\`${code}\``, 'm'));
  });

  it('has links that lead somewhere', () => {
    for (const [, path = ''] of page.matchAll(/\]\(([\w./-]+\.\w+)(?:#[\w-]+)?\)/g)) {
      expect(() => readFileSync(new URL(path, new URL('docs/', root))), path).not.toThrow();
    }
  });
});
