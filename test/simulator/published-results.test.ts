/**
 * The published results that `npm run reproduce` runs in full, in short; and the page, which is made of what that run
 * noted.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { page } from '../../scripts/reproduce/page.mjs';
import { rows } from '../../scripts/reproduce/rows/index.mjs';
import * as headgate from '../../src/index.js';
import * as simulator from '../../src/simulator/index.js';

const scenarios = new URL('../../examples/scenarios/', import.meta.url);
const kit = {
  headgate,
  simulator,
  isShort: true,
  readFile: (name: string) => readFileSync(new URL(name, scenarios), 'utf8'),
};
const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const results = JSON.parse(read('scripts/reproduce/results.json'));

describe.each(rows)('$id $title', ({ id, check, run }) => {
  it(check, { timeout: 120_000 }, () => {
    const outcome = run(kit);
    expect(outcome, outcome.ours).toMatchObject({ holds: true });
    // Otherwise the page tells of another version: `npm run reproduce` makes it anew.
    const { ours, control }: { ours: string; control?: string } = outcome;
    expect({ ours, control }).toEqual({ control: undefined, ...results[id].short });
  });
});

it('the page has what the run noted, and nothing else', () => {
  expect(read('docs/proof.md')).toBe(page(rows, results));
  expect(Object.keys(results)).toEqual(rows.map(({ id }) => id));
});
