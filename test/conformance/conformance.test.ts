/**
 * Plays every vector of every file. A vector passes, or `deviations.json` says why it does not; a kind that nobody
 * knows fails, and so does a vector that could not be played, whether or not the list excuses it. Vectors of another
 * folder: `VECTORS_DIR=<folder> npm run test:conformance`.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { runners } from './runners/index.js';
import { type Deviation, deviationOf, isListed } from './support/deviations.js';
import { Fields } from './support/fields.js';
import { play } from './support/play.js';
import { Tally, type Verdict } from './support/tally.js';
import { folderName, isOwnFolder, readVectorFiles, type Vector } from './support/vectors.js';

const tally = new Tally();
const fields = new Fields();

/** The vector does what it expects, or its deviation is right about what happens in its place. */
async function judge(
  vector: Vector,
  deviation: Deviation | undefined,
  note: (verdict: Verdict) => void,
): Promise<Verdict> {
  const result = await play(isOwnFolder ? fields.watch(vector) : vector);
  if (result.type === 'same') return deviation === undefined ? 'passed' : 'stale';
  if (result.type === 'not played') note('unplayable');
  if (deviation === undefined || result.type === 'not played') throw result.why;
  const instead = deviation.instead?.[vector.id];
  if (instead !== undefined) await runners[vector.kind]?.({ ...vector, expect: { ...vector.expect, ...instead } });
  return 'deviation';
}

for (const file of readVectorFiles()) {
  describe(file.name, () => {
    it('declares no kind that nobody knows', () => {
      expect(file.kinds.filter((kind) => runners[kind] === undefined && !isListed(kind))).toEqual([]);
    });

    for (const vector of file.vectors) {
      it(`${vector.id} ${vector.kind}: ${vector.name}`, async ({ skip }) => {
        const note = tally.begin(file.name, vector);
        const deviation = deviationOf(vector);
        const verdict = await judge(vector, deviation, note);
        note(verdict);
        if (verdict === 'stale') skip(`${verdict}: ${deviation?.reason}`);
      });
    }
  });
}

/** Vectors that somebody brought along may be better served than the list says; that is reported, and no failure. */
it.runIf(isOwnFolder)('deviations.json lists nothing that passes', () => {
  expect(tally.staleIds()).toEqual([]);
});

it.runIf(isOwnFolder)('reads every field of every kind, in one vector at least', () => {
  expect(fields.unread()).toEqual([]);
});

afterAll(() => {
  console.info(`\nvectors of ${folderName}\n${tally.describe()}`);
});
