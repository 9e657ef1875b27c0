import { describe, expect, it } from 'vitest';
import { guardedScores } from '../../../src/tiers/3-ordering/guarded-ordering.js';
import { fakeItem } from '../../support/fake-item.js';

const item = fakeItem();
const throwing = (): never => {
  throw new Error('broken');
};

/** The scores of a policy behind their guard, and what was reported. */
function guard(scores: Record<string, unknown> | undefined) {
  const faults: string[] = [];
  const errors = {
    pluginFailed: (kind: string, type: string, error: unknown) => void faults.push(`${kind} ${type}: ${String(error)}`),
  };
  const given = scores && { lookahead: 4, overtakings: 2, score: () => 7, ...scores };
  return { scores: guardedScores({ type: 'x', compare: () => 0, scores: given } as never, errors), faults };
}

describe('the scores of an ordering policy', () => {
  it('are none where it has none', () => {
    expect(guard(undefined)).toEqual({ scores: undefined, faults: [] });
  });

  it('are what it says, and it hears of dispatches', () => {
    const told: unknown[] = [];
    const { scores, faults } = guard({ dispatched: (given: unknown) => void told.push(given) });
    scores?.dispatched?.(item);
    expect([scores?.lookahead, scores?.overtakings, scores?.score(item), told, faults]).toEqual([4, 2, 7, [item], []]);
  });

  it('need not hear of dispatches', () => {
    const { scores, faults } = guard({});
    scores?.dispatched?.(item);
    expect(faults).toEqual([]);
  });

  it.each([[undefined], ['7'], [Number.NaN], [null]])('are 0 in place of %j, which is reported', (answer) => {
    const { scores, faults } = guard({ score: () => answer });
    expect(scores?.score(item)).toBe(0);
    expect(faults).toEqual([`ordering x: TypeError: score must return a number; got ${String(answer)}`]);
  });

  it('are 0 where it throws, and an exception when it is told goes no further', () => {
    const { scores, faults } = guard({ score: throwing, dispatched: throwing });
    expect(scores?.score(item)).toBe(0);
    scores?.dispatched?.(item);
    expect(faults).toEqual(['ordering x: Error: broken', 'ordering x: Error: broken']);
  });

  it('are told of a promise that is rejected, and say nothing of others', async () => {
    const { scores, faults } = guard({ dispatched: () => Promise.reject(new Error('late')) });
    scores?.dispatched?.(item);
    await new Promise(setImmediate);
    expect(faults).toEqual(['ordering x: Error: late']);
  });

  it.each([
    ['lookahead', 0, 1],
    ['lookahead', 1.5, 1],
    ['lookahead', '4', 1],
    ['overtakings', -1, 0],
    ['overtakings', Number.NaN, 0],
  ])('take the least for a %s of %j, which is reported', (name, given, least) => {
    const { scores, faults } = guard({ [name]: given });
    expect(scores?.[name as 'lookahead']).toBe(least);
    expect(faults).toEqual([
      `ordering x: TypeError: scores.${name} must be an integer from ${least} up; got ${String(given)}`,
    ]);
  });

  it('may look no further than the first, and let nobody be passed', () => {
    const { scores, faults } = guard({ lookahead: 1, overtakings: 0 });
    expect([scores?.lookahead, scores?.overtakings, faults]).toEqual([1, 0, []]);
  });
});
