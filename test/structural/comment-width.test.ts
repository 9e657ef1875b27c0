/** Comments are as wide as code, which the formatter keeps to its width. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import biome from '../../biome.json' with { type: 'json' };

const src = fileURLToPath(new URL('../../src/', import.meta.url));
const { lineWidth } = biome.formatter;

/** Pictures and tables keep their columns, and what tools read has to stand in one line. */
const mayBeWider = /\S {2,}\S|[─│►▼]|biome-ignore|@import|https?:/;

it('comments fit into the width of code', () => {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const comments = files.flatMap((file) =>
    readFileSync(src + file, 'utf8')
      .split('\n')
      .flatMap((text, index) => (/^\s*(?:\/\*\*|\*|\/\/)/.test(text) ? [{ at: `${file}:${index + 1}`, text }] : [])),
  );
  expect(comments.length).toBeGreaterThan(1_000);
  expect(comments.filter(({ text }) => text.length > lineWidth && !mayBeWider.test(text))).toEqual([]);
});
