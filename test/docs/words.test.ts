/**
 * Pages are read when they are short. A ceiling goes down with what it bounds, and never up. Pages that are made of the
 * sources are looked things up in, not read: they have a ceiling of their own.
 */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { pages } from './pages.js';

const counts = pages.map((page) => {
  const text = readFileSync(page, 'utf8');
  return { page, words: text.split(/\s+/).filter(Boolean).length, isMade: text.includes('\n<!-- made by test/') };
});
const sumOf = (some: typeof counts): number => some.reduce((sum, { words }) => sum + words, 0);
const written = counts.filter(({ isMade }) => !isMade);

it('no page that is written has more than 4,000 words', () => {
  expect(written.filter(({ words }) => words > 4_000)).toEqual([]);
});

it('all pages that are written have together at most 75,700 words', () => {
  expect(sumOf(written)).toBeLessThanOrEqual(75_700);
});

it('pages that are made of the sources have together at most 9,160 words', () => {
  expect(sumOf(counts) - sumOf(written)).toBeLessThanOrEqual(9_160);
});
