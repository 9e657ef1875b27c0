/** Pages are read when they are short. A ceiling goes down with what it bounds, and never up. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { pages } from './pages.js';

const wordsOf = (page: string): number => readFileSync(page, 'utf8').split(/\s+/).filter(Boolean).length;
const counts = pages.map((page) => [page, wordsOf(page)] as const);

it('no page has more than 4,000 words', () => {
  expect(counts.filter(([, words]) => words > 4_000)).toEqual([]);
});

it('all pages together have at most 87,600 words', () => {
  expect(counts.reduce((sum, [, words]) => sum + words, 0)).toBeLessThanOrEqual(87_600);
});
