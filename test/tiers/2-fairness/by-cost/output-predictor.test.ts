import { describe, expect, it } from 'vitest';
import { AverageTable, outputPredictor } from '../../../../src/tiers/2-fairness/by-cost/output-predictor.js';
import { fakeItem } from '../../../support/fake-item.js';

const of = (fairnessId: string) => fakeItem({ fairnessId });

describe('outputPredictor', () => {
  it('predicts 256 tokens where no answer is known, then the first answer, then an average over five', () => {
    const predictor = outputPredictor();
    expect(predictor.predict(of('a'), '')).toBe(256);
    predictor.observe('a', '', 90);
    expect(predictor.predict(of('a'), '')).toBe(90);
    predictor.observe('a', '', 120);
    expect(predictor.predict(of('a'), '')).toBeCloseTo(100);
  });

  it('keeps fairness IDs apart, and the models of each', () => {
    const predictor = outputPredictor({ initialTokens: 7 });
    predictor.observe('a', 'large', 500);
    predictor.observe('a', '', 50);
    const predictions = [of('a'), of('b')].map((item) =>
      ['large', 'small', ''].map((model) => predictor.predict(item, model)),
    );
    expect(predictions).toEqual([
      [500, 7, 50],
      [7, 7, 7],
    ]);
  });

  it('rejects a window or a length below 1', () => {
    expect(() => outputPredictor({ window: 0, initialTokens: 0 })).toThrow('outputPredictor: 2 problems');
  });
});

describe('a table of averages', () => {
  it('has room for 8192 keys, so that hashes with the same last 13 bits share an average, and no others', () => {
    const table = new AverageTable(1, 5);
    table.add(3, '', 40);
    expect([table.at(3, ''), table.at(3 + 8192, ''), table.at(3 - 8192, '')]).toEqual([40, 40, 40]);
    for (let bit = 0; bit < 13; bit++) expect(table.at(3 ^ (1 << bit), '')).toBe(5);
  });

  it('goes by the part of a key as well', () => {
    const table = new AverageTable(1, 5);
    table.add(3, 'x', 40);
    expect([table.at(3, 'x'), table.at(3, ''), table.at(4, 'x')]).toEqual([40, 5, 5]);
  });
});
