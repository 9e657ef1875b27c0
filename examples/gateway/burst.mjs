// @ts-check
// The traffic of the eviction demo: a batch job takes every seat and queues for more, and then premium has a burst.

import { drawArrival, randomFrom, tenants } from './tenants.mjs';

/** @import { Arrival, Tenant } from './tenants.mjs' */

/** Three servers of 15 seats, and a few that wait. Long answers: whoever waits for them to end waits for seconds. */
const fill = { tenant: 'batch', requests: 51, fromMs: 0, forMs: 700, outputTokens: /** @type {const} */ ([190, 260]) };
/** About half of the seats, within half a second, once every seat is taken. */
const rush = {
  tenant: 'premium',
  requests: 24,
  fromMs: 1_500,
  forMs: 500,
  outputTokens: /** @type {const} */ ([40, 80]),
};

/**
 * Evenly spaced, so that the numbers are the same for every seed; only the lengths are drawn.
 * @param {number} seed
 * @returns {Arrival[]} In order of time.
 */
export function burst(seed) {
  return [fill, rush].flatMap(({ tenant: id, requests, fromMs, forMs, outputTokens }, index) => {
    const random = randomFrom(seed * 1_000 + index);
    const tenant = { .../** @type {Tenant} */ (tenants.find((candidate) => candidate.id === id)), outputTokens };
    return Array.from({ length: requests }, (_, serial) =>
      drawArrival(random, tenant, fromMs + (serial * forMs) / requests),
    );
  });
}
