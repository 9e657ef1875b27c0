// @ts-check
// The traffic of the comparison of long prompts beside chats. At load 1 each mix is about what two servers can do, at any
// load chats are at most four fifths of it: a chat need not wait for other chats.

import { drawArrival, randomFrom } from './tenants.mjs';

/** @import { Arrival, Tenant } from './tenants.mjs' */

/** @type {readonly Omit<Tenant, 'requestsPerSecond'>[]} */
const senders = [
  {
    id: 'chat',
    objective: 'chat',
    note: 'someone reads along',
    promptTokens: [50, 400],
    outputTokens: [20, 120],
    ttftTargetMs: 1_000,
    patienceMs: 120_000,
  },
  {
    id: 'long',
    objective: 'long',
    note: 'documents, each up to a third of a cache',
    promptTokens: [2_000, 6_800],
    outputTokens: [40, 200],
    ttftTargetMs: 10_000,
    patienceMs: 120_000,
  },
];

/** Requests a second, of chats and of long prompts. @type {Readonly<Record<string, readonly [chat: number, long: number]>>} */
export const mixes = { chats: [9.2, 1.4], half: [5.8, 1.75], long: [2.3, 2.1] };

/**
 * Poisson arrivals, in order of time.
 * @param {number} seed
 * @param {number} durationMs
 * @param {string} mix One of `mixes`.
 * @param {number} load Times what two servers can do.
 * @returns {Arrival[]}
 */
export function mixed(seed, durationMs, mix, load) {
  const arrivals = senders.flatMap((sender, index) => {
    const random = randomFrom(seed * 1_000 + index);
    const requestsPerSecond = /** @type {readonly number[]} */ (mixes[mix])[index] ?? 0;
    const tenant = { ...sender, requestsPerSecond: requestsPerSecond * load };
    /** @type {Arrival[]} */
    const own = [];
    for (let atMs = 0; ; ) {
      atMs += (-Math.log(1 - random()) / tenant.requestsPerSecond) * 1_000;
      if (atMs >= durationMs) return own;
      own.push(drawArrival(random, tenant, atMs));
    }
  });
  return arrivals.sort((a, b) => a.atMs - b.atMs);
}
