/** The pages of the gate's policies: their examples work as printed, and they name every parameter. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
/** Inside the package, so that the snippets' imports resolve as a user's would, by the package's own name. */
const scratch = new URL('test-results/gate-snippets/', root);

const parameters: Readonly<Record<string, readonly string[]>> = {
  'priority-holdback-policy': ['shape', 'domain', 'minCeiling', 'maxCeiling'],
  'interpolated-usage-limit-policy': ['threshold'],
  'soft-reflective-ceiling-policy': [],
  'max-saturation-detector': ['detectors', 'stages'],
  'mean-saturation-detector': ['detectors', 'stages'],
  'stage-aware-saturation-detector': ['detector', 'prefill', 'decode'],
  'busy-threshold-detector': ['activeDecodeBlocksThreshold', 'activePrefillTokensThreshold', 'activePrefillTokensThresholdFrac'],
};

beforeAll(() => mkdirSync(scratch, { recursive: true }));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe.each(Object.entries(parameters))('docs/policies/%s.md', (page, names) => {
  const text = readFileSync(new URL(`docs/policies/${page}.md`, root), 'utf8');

  it('has an example that works as printed', async () => {
    const snippets = [...text.matchAll(/<!-- run by test\/docs\/gate-policies\.test\.ts -->\n```js\n(.*?)```/gs)];
    expect(snippets).toHaveLength(1);
    const file = new URL(`${page}.mjs`, scratch);
    writeFileSync(file, snippets[0]?.[1] ?? '');
    const { test } = (await import(/* @vite-ignore */ pathToFileURL(fileURLToPath(file)).href)) as {
      test(assertions: typeof assert): void;
    };
    test(assert);
  });

  it('names every parameter', () => {
    for (const name of names) expect(text).toMatch(new RegExp(`^\\|.*\`${name}\``, 'm'));
  });
});
