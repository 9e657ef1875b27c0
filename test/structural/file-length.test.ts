/** A file holds one concept. One that is long says in its header why it is not two. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const src = fileURLToPath(new URL('../../src/', import.meta.url));
const mostLines = 300;

/** Made by scripts. */
const made = /built-page\.ts$/;

it('a file of more than 300 lines says in its header why', () => {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => /\.ts$/.test(file));
  const texts = files
    .filter((file) => !made.test(file))
    .map((file) => [file, readFileSync(src + file, 'utf8')] as const);
  const long = texts.filter(([, text]) => text.split('\n').length - 1 > mostLines);
  expect(long.length).toBeGreaterThan(5);
  const withoutReason = long.filter(([, text]) => {
    const header = /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0].replaceAll(/\s*\n \*\s*/g, ' ') ?? '';
    return !/(?:Longer|Larger) than most files, because \w/.test(header);
  });
  expect(withoutReason.map(([file]) => file)).toEqual([]);
});
