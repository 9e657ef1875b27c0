/** The short form of `npm run torture -- sockets`. */
import { expect, it } from 'vitest';
import { playLeavingTurns } from './leaving-turns.js';

it('clients that vanish in every phase of a turn leave no seat behind', async () => {
  const { stats, violations, played } = await playLeavingTurns(600, 3);
  expect([stats.inFlight, stats.waiting, violations]).toEqual([0, 0, []]);
  expect(stats.dispatched).toBe(stats.released);
  expect(Math.min(...Object.values(played))).toBeGreaterThan(0);
  expect(stats.outcomes.EvictedContextCancelled).toBeGreaterThan(0);
});
