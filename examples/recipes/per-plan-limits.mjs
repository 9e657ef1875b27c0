// @ts-check
// What a plan buys: how much a tenant may run, how much may wait, and its share while others wait. A tenant changes its
// plan while it runs.
import assert from 'node:assert/strict';
import { concurrencyDetector, FlowController } from 'headgate';

/** @type {Record<string, import('headgate').FlowSettings>} */
const plans = {
  free: { weight: 1, maxInFlight: 2, limits: { maxRequests: 5 } },
  team: { weight: 4, maxInFlight: 6, limits: { maxRequests: 50 } },
};
/** A cache of your database: the function answers at once. @type {Map<string, string>} */
const planOf = new Map([['acme', 'team']]);

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 8 }),
  flows: (tenant) => plans[planOf.get(tenant) ?? 'free'],
});

/** @param {string} tenant */
const send = (tenant) => flow.enqueue({ byteSize: 100 }, { fairnessId: tenant, priority: 0 });
/** @param {string} tenant @param {number} count */
const burst = (tenant, count) => Array.from({ length: count }, () => send(tenant));
const hobby = burst('hobby', 9); // two run, five wait, two are told 429
assert.equal(flow.stats().inFlight, 2);
const rejected = (await Promise.all(hobby.slice(7))).map((outcome) => outcome.type !== 'Dispatched' && outcome.reason);
assert.deepEqual(rejected, ['flow-max-requests', 'flow-max-requests']);
console.log(
  `hobby, free: of nine requests ${flow.stats().inFlight} run, ${flow.stats().waiting} wait, ${rejected.length} are rejected (${rejected[0]}).`,
);

const acme = burst('acme', 9);
assert.equal(flow.stats().inFlight, 8);
console.log(`acme, team: of nine requests ${flow.stats().inFlight - 2} run, beside them.`);

planOf.set('hobby', 'team'); // the customer pays
flow.refreshFlow('hobby');
const first = await /** @type {Promise<import('headgate').Outcome>} */ (acme[0]);
if (first.type === 'Dispatched') first.lease.release();
const third = await /** @type {Promise<import('headgate').Outcome>} */ (hobby[2]);
assert.equal(third.type, 'Dispatched');
console.log('hobby, now team: its third request has the next free seat.');
await flow.close();
