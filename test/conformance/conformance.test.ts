/**
 * Plays every vector of every file. A vector passes, or `deviations.json` says why it does not; a kind that nobody knows fails.
 * Vectors of another folder: `VECTORS_DIR=<folder> npm run test:conformance`.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { runners } from './runners/index.js';
import { type Deviation, deviationOf, isListed } from './support/deviations.js';
import { Tally } from './support/tally.js';
import { folderName, isOwnFolder, readVectorFiles, type Vector } from './support/vectors.js';

const tally = new Tally();

/** True when headgate does what the vector expects. */
async function passes(vector: Vector): Promise<boolean> {
  try {
    await runners[vector.kind]?.(vector);
    return runners[vector.kind] !== undefined;
  } catch {
    return false;
  }
}

/** A deviation that is none would hide what comes after it; one that says what happens in its place must be right about it. */
async function confirm(vector: Vector, { instead }: Deviation): Promise<'confirmed' | 'stale'> {
  if (await passes(vector)) return 'stale';
  if (instead !== undefined) await runners[vector.kind]?.({ ...vector, expect: { ...vector.expect, ...instead } });
  return 'confirmed';
}

function unknownKind({ kind }: Vector): never {
  throw new Error(`unknown kind ${kind}: neither a runner nor deviations.json knows it`);
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
        if (deviation !== undefined) {
          const verdict = await confirm(vector, deviation);
          note(verdict === 'stale' ? 'stale' : deviation.status);
          skip(`${deviation.status}: ${deviation.reason}`);
        }
        const run = runners[vector.kind] ?? unknownKind;
        await run(vector);
        note('passed');
      });
    }
  });
}

/** Vectors that somebody brought along may be better served than the list says; that is reported, and no failure. */
it.runIf(isOwnFolder)('deviations.json lists nothing that passes', () => {
  expect(tally.staleIds()).toEqual([]);
});

afterAll(() => {
  console.info(`\nvectors of ${folderName}\n${tally.describe()}`);
});
