import { expect, it } from 'vitest';
import { strictBands } from '../../../src/tiers/1-priority/strict-bands.js';

it('strictBands() says that the highest band goes first, and leaves an order as it finds it', () => {
  const policy = strictBands();
  const order = [0, 1];
  expect(policy).toMatchObject({ type: 'strict-band-selection-policy', strict: true });
  expect([policy.rank(0.5, [10, 0], [1, 1], order), order]).toEqual([undefined, [0, 1]]);
});
