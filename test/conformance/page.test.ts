import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Deviation, deviations } from './support/deviations.js';
import { withLists } from './support/deviations-page.js';
import { play } from './support/play.js';
import { readVectorFiles } from './support/vectors.js';

const page = fileURLToPath(new URL('README.md', import.meta.url));

describe('test/conformance/README.md', () => {
  // Brought up to date by `npx vitest run test/conformance/page.test.ts -u`.
  it('lists what deviations.json lists', async () => {
    await expect(withLists(readFileSync(page, 'utf8'))).toMatchFileSnapshot(page);
  });

  it('shows a file of vectors that is read, and whose vector passes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-vectors-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [, text = ''] = /```json\n(.*?)```/s.exec(readFileSync(page, 'utf8'))!;
    writeFileSync(join(folder, 'mine.json'), text);
    const vectors = readVectorFiles(folder).flatMap((file) => file.vectors);
    expect(vectors.map(({ id }) => id)).toEqual(['mine-1']);
    for (const vector of vectors) expect(await play(vector)).toEqual({ type: 'same' });
  });
});

describe('deviations.json', () => {
  it('gives each entry a reason', () => {
    expect(deviations.filter(({ reason }) => reason.length < 20)).toEqual([]);
  });

  it('excuses conditions, and no single vector', () => {
    const conditions = ({ where = {} }: Deviation): string[] => Object.keys(where);
    expect(deviations.filter((entry) => conditions(entry).length === 0 || 'id' in entry)).toEqual([]);
    expect(deviations.flatMap(conditions).filter((path) => ['id', 'name', 'sourceTest'].includes(path))).toEqual([]);
  });
});
