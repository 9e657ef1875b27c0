/** What fuzzing found once holds for good: each target plays its corpus. `npm run fuzz` looks for more. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const folder = new URL('../../fuzz/', import.meta.url);
const targets = readdirSync(new URL('corpus/', folder));

describe.each(targets)('%s', (name) => {
  const corpus = new URL(`corpus/${name}/`, folder);

  it('holds for its corpus', async () => {
    const { fuzz }: { fuzz(input: Buffer): void } = await import(new URL(`${name}.ts`, folder).href);
    const files = readdirSync(corpus);
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(() => fuzz(readFileSync(new URL(file, corpus))), file).not.toThrow();
  });
});

it('every target has a corpus', () => {
  const sources = readdirSync(folder).filter((name) => name.endsWith('.ts') && name !== 'inputs.ts');
  expect(sources.map((name) => name.slice(0, -3))).toEqual(targets);
});
