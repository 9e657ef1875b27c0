import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pairs } from './pairs.js';
import { rare, reached } from './reached.js';
import { type Step, stepKinds, World, type WorldOptions } from './world.js';

const step: fc.Arbitrary<Step> = fc.record({ kind: fc.constantFrom(...stepKinds), salt: fc.nat() });
const history = fc.record({
  seed: fc.noShrink(fc.nat()),
  steps: fc.array(step, { minLength: 1, maxLength: 90, size: 'max' }),
});

async function live(options: WorldOptions, steps: readonly Step[]): Promise<void> {
  const world = new World(options);
  for (const next of steps) {
    await world.perform(next);
    expect(world.faults).toEqual([]);
  }
  await world.end();
  expect(world.faults).toEqual([]);
}

describe('after every step of a random history everything balances', () => {
  it('with plugins that keep their contracts', async () => {
    await fc.assert(
      fc.asyncProperty(history, ({ seed, steps }) => live({ seed, hasNonsense: false, isTangled: false }, steps)),
      { seed: 20_260_801, numRuns: 300 },
    );
  });

  it('with everything at once that may hold a request back', async () => {
    await fc.assert(
      fc.asyncProperty(history, ({ seed, steps }) => live({ seed, hasNonsense: false, isTangled: true }, steps)),
      { seed: 77_031, numRuns: 300 },
    );
  });

  it('with plugins and listeners that throw, answer nonsense and call the controller back', async () => {
    await fc.assert(
      fc.asyncProperty(history, ({ seed, steps }) =>
        live({ seed, hasNonsense: true, isTangled: seed % 2 === 0 }, steps),
      ),
      { seed: 4_211, numRuns: 300 },
    );
  });
});

describe('these histories come to', () => {
  it('every state that they exist for', () => {
    expect(rare, reached.report).toEqual(expect.arrayContaining([...reached.never]));
  });

  it('a dispatch under each two of the optional parts', () => {
    expect(pairs.never, `${pairs.all} pairs`).toEqual([]);
  });
});
