/**
 * What pages and examples show is copied: none of them compares a key, or looks it up, in a time that depends on it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { blocksOf, pages } from './pages.js';

const examples = readdirSync('examples', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.mjs'));
const texts = [
  ...pages.flatMap((page) => blocksOf(page).map(({ code, line }) => [`${page}:${line}`, code] as const)),
  ...examples.map((name) => [`examples/${name}`, readFileSync(`examples/${name}`, 'utf8')] as const),
];

/** Lines that read what a client says of itself, and compare it or look it up as it stands. */
const careless =
  /^(?!.*(?:digest\(|timingSafeEqual|isSame)).*(?:===|!==|\.get\(|\.has\(|\[).*headers?\b.*(?:authorization|api-key|operator|token)/gim;

it.each(texts)('%s compares keys by their digests, if at all', (_where, text) => {
  expect(text.match(careless) ?? []).toEqual([]);
});

it('finds careless comparisons', () => {
  for (const line of [
    "keys[req.headers['x-api-key']]",
    'keys.get(request.headers.authorization)',
    "a === c.req.header('authorization')",
  ]) {
    expect(line.match(careless)).toHaveLength(1);
  }
});
