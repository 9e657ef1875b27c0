// @ts-check
// Shadow mode: a burst goes through untouched, the controller says what it would have done, and one word turns it on.
import assert from 'node:assert/strict';
import { concurrencyDetector, FlowController, shadow } from 'headgate';

const flow = new FlowController({
  mode: shadow(),
  saturationDetector: concurrencyDetector({ maxConcurrency: 4 }),
  limits: { maxRequests: 10 },
  bands: [{ priority: 10 }, { priority: 0 }],
});

/** @param {number} priority */
async function send(priority) {
  const outcome = await flow.enqueue({ byteSize: 100 }, { fairnessId: 'tenant', priority });
  if (outcome.type !== 'Dispatched') return false;
  await new Promise((resolve) => setTimeout(resolve, 20));
  outcome.lease.release();
  return true;
}

/** @param {number} count */
async function burst(count) {
  const served = await Promise.all(Array.from({ length: count }, (_, i) => send(i % 3 === 0 ? 10 : 0)));
  return served.filter(Boolean).length;
}

console.log(`In shadow mode ${await burst(20)} of 20 requests are served at once, and it says:`);
const { shadow: told } = flow.stats();
assert.ok(told !== undefined);
const dropped = told.wouldHaveBeenDropped.map(({ reason, requests }) => `${requests} ${reason}`).join(', ');
console.log(`  ${told.wouldHaveWaited} would have waited, and dropped would have been: ${dropped}.`);
assert.deepEqual([told.passed, told.wouldHaveWaited], [20, 10]);
assert.equal(dropped, '6 global-max-requests');

flow.reconfigure({ mode: 'queue' });
const served = await burst(20);
console.log(`Turned on, it serves ${served} of the same 20, four at a time, and refuses the rest at once.`);
assert.equal(served, 14);
assert.equal(flow.stats().shadow, undefined);
await flow.close();
