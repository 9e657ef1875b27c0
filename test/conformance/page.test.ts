import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { deviations } from './support/deviations.js';
import { withLists } from './support/deviations-page.js';

const page = fileURLToPath(new URL('../../docs/conformance.md', import.meta.url));

describe('docs/conformance.md', () => {
  // Brought up to date by `npx vitest run test/conformance/page.test.ts -u`.
  it('lists what deviations.json lists', async () => {
    await expect(withLists(readFileSync(page, 'utf8'))).toMatchFileSnapshot(page);
  });
});

describe('deviations.json', () => {
  it('gives each entry a status that exists, and a reason', () => {
    const wrong = deviations.filter(({ status, reason }) => !['deviation', 'not-built'].includes(status) || reason.length < 20);
    expect(wrong).toEqual([]);
  });

  it('excuses conditions, and no single vector', () => {
    expect(deviations.filter((entry) => 'id' in entry)).toEqual([]);
  });
});
