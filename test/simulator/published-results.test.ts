/** The published results that `npm run reproduce` runs in full, in short. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
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
const page = readFileSync(new URL('../../docs/proof.md', import.meta.url), 'utf8');

describe.each(rows)('$id $title', ({ id, title, check, run }) => {
  it(check, { timeout: 120_000 }, () => {
    const outcome = run(kit);
    expect(outcome, outcome.ours).toMatchObject({ holds: true });
  });

  it('has its place on the page', () => {
    expect(page).toContain(`## ${id}: ${title}`);
  });
});
