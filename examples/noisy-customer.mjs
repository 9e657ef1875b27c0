// @ts-check
// One noisy customer: it sends a hundred requests at once, and may run two of them at a time. The others do not notice
// it.
import assert from 'node:assert/strict';
import { concurrencyDetector, FlowController } from 'headgate';

/** @type {Record<string, import('headgate').FlowSettings>} What the host's database knows of plans. */
const plans = { noisy: { maxInFlight: 2 } };

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 8 }),
  flows: (fairnessId) => plans[fairnessId],
});

/** @type {Record<string, number>} */
const running = {};
/** @type {Record<string, number>} */
const most = {};

/** @param {string} fairnessId */
async function send(fairnessId) {
  return flow.run({ byteSize: 100 }, { fairnessId }, async () => {
    running[fairnessId] = (running[fairnessId] ?? 0) + 1;
    most[fairnessId] = Math.max(most[fairnessId] ?? 0, running[fairnessId]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running[fairnessId]--;
  });
}

const burst = Array.from({ length: 100 }, () => send('noisy'));
console.log(
  `The noisy customer sent 100 requests: ${flow.stats().inFlight} run, ${flow.stats().waiting} wait for its own cap.`,
);
assert.deepEqual([flow.stats().inFlight, flow.stats().waiting], [2, 98]);

const polite = Array.from({ length: 6 }, () => send('polite'));
console.log(`Another customer sent 6: ${flow.stats().inFlight} run in all, so none of these waited.`);
assert.equal(flow.stats().inFlight, 8);
await Promise.all(polite);

plans.noisy = { maxInFlight: 4 };
flow.refreshFlow('noisy');
await Promise.all(burst);
console.log(
  `The noisy customer bought a larger plan while it waited: it ran up to ${most.noisy} at a time, and nothing was rejected.`,
);
assert.equal(most.noisy, 4);
assert.equal(flow.stats().rejected + flow.stats().evicted, 0);
