// @ts-check
// The traffic: who sends how much of what, and what each expects. Together about 1.5 times what three servers can do.
// The schedule is drawn from a seed, one stream of chance per tenant, so that both runs see the same arrivals to the
// millisecond.

/**
 * @typedef {object} Tenant
 * @property {string} id Sent as the fairness ID.
 * @property {string} objective Sent as the inference objective; its priority stands in gateway.yaml.
 * @property {string} note
 * @property {number} requestsPerSecond
 * @property {readonly [least: number, most: number]} promptTokens
 * @property {readonly [least: number, most: number]} outputTokens
 * @property {number} ttftTargetMs A request is good if it completes and its first token came within this time.
 * @property {number} patienceMs The client hangs up if its first token has not come by then.
 */

/** @type {readonly Tenant[]} */
export const tenants = [
  {
    id: 'premium',
    objective: 'premium-traffic',
    note: 'interactive, tight deadline',
    requestsPerSecond: 5,
    promptTokens: [150, 350],
    outputTokens: [40, 80],
    ttftTargetMs: 1_000,
    patienceMs: 10_000,
  },
  {
    id: 'polite',
    objective: 'standard-traffic',
    note: 'stays within its share',
    requestsPerSecond: 3.5,
    promptTokens: [200, 500],
    outputTokens: [60, 100],
    ttftTargetMs: 2_500,
    patienceMs: 15_000,
  },
  {
    id: 'noisy',
    objective: 'standard-traffic',
    note: 'the noisy neighbour: huge prompts, high rate',
    requestsPerSecond: 7.5,
    promptTokens: [1_000, 2_600],
    outputTokens: [40, 100],
    ttftTargetMs: 2_500,
    patienceMs: 15_000,
  },
  {
    id: 'batch',
    objective: 'best-effort-traffic',
    note: 'nightly job, sheddable',
    requestsPerSecond: 3.5,
    promptTokens: [200, 600],
    outputTokens: [100, 200],
    ttftTargetMs: 10_000,
    patienceMs: 30_000,
  },
];

/** @typedef {{ atMs: number, tenant: Tenant, promptTokens: number, outputTokens: number }} Arrival */

/**
 * Poisson arrivals of every tenant, in order of time.
 * @param {number} seed
 * @param {number} durationMs
 * @returns {Arrival[]}
 */
export function schedule(seed, durationMs) {
  const arrivals = tenants.flatMap((tenant, index) => {
    const random = randomFrom(seed * 1_000 + index);
    /** @type {Arrival[]} */
    const own = [];
    for (;;) {
      const gapMs = (-Math.log(1 - random()) / tenant.requestsPerSecond) * 1_000;
      const atMs = (own.at(-1)?.atMs ?? 0) + gapMs;
      if (atMs >= durationMs) return own;
      own.push(drawArrival(random, tenant, atMs));
    }
  });
  return arrivals.sort((a, b) => a.atMs - b.atMs);
}

/**
 * One request of typical length. @param {() => number} random @param {Tenant} tenant @param {number} atMs @returns
 * {Arrival}
 */
export function drawArrival(random, tenant, atMs) {
  const between = (/** @type {readonly [number, number]} */ [least, most]) =>
    Math.round(least + random() * (most - least));
  return { atMs, tenant, promptTokens: between(tenant.promptTokens), outputTokens: between(tenant.outputTokens) };
}

/**
 * A small generator (a Weyl sequence through a 32-bit mixer); 0 <= value < 1.
 * @param {number} seed
 */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}
