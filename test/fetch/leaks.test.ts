/** The short form of `npm run torture -- fetch`. */
import { expect, it } from 'vitest';
import { clients } from './clients.js';
import { playLeavingClients } from './leaving-clients.js';

it(`clients that leave in every phase, through each of ${clients.length} SDKs, leave no seat and no reservation behind`, async () => {
  const { stats, reserved, violations, played, asked, left } = await playLeavingClients({ requests: 600, seed: 3 });
  expect({ inFlight: stats.inFlight, inFlightTokens: stats.inFlightTokens, waiting: stats.waiting, reserved }).toEqual({
    inFlight: 0,
    inFlightTokens: 0,
    waiting: 0,
    reserved: 0,
  });
  expect(violations).toEqual([]);
  // Every phase was there: nothing of this is shown by requests that all went well.
  expect(Object.keys(played)).toHaveLength(10);
  expect(stats.dispatched).toBe(stats.released);
  expect(stats.outcomes.EvictedContextCancelled).toBeGreaterThan(0);
  expect(asked).toBeGreaterThan(300);
  expect(left).toBeGreaterThan(50);
});
