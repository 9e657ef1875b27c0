// A fairness policy of your own, and the public contract suite that it must pass: with node:test, or any framework that
// has `it`.
//
//     node --test examples/contract-suite.mjs
import { describe, it } from 'node:test';
import { fairnessPolicyContract } from 'headgate/testing';

/**
 * The flow with the fewest waiting requests goes first, those that became active earlier before others. O(active
 * flows).
 */
function shortestFirst() {
  return {
    type: 'shortest-first',
    /** @param {import('headgate/types').BandView} band */
    createSelector: (band) => ({
      pick() {
        let shortest = band.firstActive;
        for (const flow of band.activeFlows())
          if (shortest !== undefined && flow.waiting < shortest.waiting) shortest = flow;
        return shortest;
      },
    }),
  };
}

describe('shortest-first keeps the contract of fairness policies', () => {
  for (const { name, run } of fairnessPolicyContract(() => shortestFirst())) it(name, run);
});
