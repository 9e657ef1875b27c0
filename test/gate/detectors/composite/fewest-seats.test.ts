import { describe, expect, it } from 'vitest';
import { fewestSeats } from '../../../../src/gate/detectors/composite/stage-aware.js';
import type { SaturationDetector } from '../../../../src/index.js';
import { fakeEndpoint } from '../../../support/fake-pool.js';

const endpoint = fakeEndpoint('a');

function seats(...answers: unknown[]): number | undefined {
  const judges = answers.map((answer) => {
    const detector = { type: 'x', saturation: () => 0, ...(answer !== undefined && { seatsOf: answer }) };
    return detector as unknown as SaturationDetector;
  });
  return fewestSeats(judges, endpoint, 5);
}

const broken = (): never => {
  throw new Error('broken');
};

describe('the seats of an endpoint', () => {
  it('are as many as the strictest of its judges lets in, none included', () => {
    expect([seats(() => 8, () => 2, () => 5), seats(() => 3), seats(() => 3, () => 0)]).toEqual([2, 3, 0]); // biome-ignore format: three
  });

  it('are unknown where nobody tells', () => {
    expect([seats(), seats(undefined), seats(() => undefined)]).toEqual([undefined, undefined, undefined]);
  });

  it.each([
    ['a failure', broken],
    ['text', () => '1'],
    ['nothing', () => null],
    ['a negative number', () => -1],
    ['NaN', () => Number.NaN],
  ])('are told by the others where one answers with %s', (_, answer) => {
    expect([seats(answer, () => 4), seats(() => 4, answer), seats(undefined, answer)]).toEqual([4, 4, undefined]);
  });

  it('are asked for at the endpoint, now', () => {
    const asked: unknown[] = [];
    seats((...about: unknown[]) => void asked.push(about));
    expect(asked).toEqual([[endpoint, 5]]);
  });
});
