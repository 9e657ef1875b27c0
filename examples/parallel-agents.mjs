// @ts-check
// Agents that call in parallel: each session may run three calls at a time, in tokens as well, and a wide fan-out waits
// for itself alone.
import assert from 'node:assert/strict';
import { concurrencyDetector, explainWait, FlowController } from 'headgate';

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 12 }),
  bands: [{ priority: 0, maxInFlightPerFlow: { requests: 3, tokens: '8k' } }],
});

/** @type {string[]} */
const order = [];

/**
 * @param {string} session
 * @param {number} [tokens]
 */
function call(session, tokens = 500) {
  // In front of HTTP, `sessionHeaders: true` makes a flow of each session of the agents that headgate knows.
  return flow.run({ byteSize: 100, tokens }, { fairnessId: session }, async () => {
    order.push(session);
    await new Promise((resolve) => setTimeout(resolve, 5));
  });
}

const fanOut = Array.from({ length: 20 }, () => call('deep-research'));
const others = ['editor', 'reviewer', 'tests'].map((session) => call(session));
console.log(
  `A fan-out of 20 calls and three other sessions: ${flow.stats().inFlight} run, ${flow.stats().waiting} wait.`,
);
assert.deepEqual([flow.stats().inFlight, flow.stats().waiting], [6, 17]);
console.log(`The first of those that wait: ${explainWait(flow, 3)?.text}`);
assert.match(explainWait(flow, 3)?.text ?? '', /its own cap \(3 of 3 running\)/);

const long = [call('summary', 6_000), call('summary', 6_000)];
assert.match(explainWait(flow, 24)?.text ?? '', /6,000 of 8,000 tokens running, 6,000 more wanted/);
await Promise.all([...fanOut, ...others, ...long]);
console.log(
  `All ${order.length} calls ran; the other sessions were among the first six: ${order.slice(0, 6).join(', ')}`,
);
assert.deepEqual(order.slice(3, 6), ['editor', 'reviewer', 'tests']);
