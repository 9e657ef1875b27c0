// @ts-check
// The library without a web framework: two tenants share one seat, a premium request goes first, and one gives up.
import { concurrencyDetector, FlowController, roundRobin } from 'headgate';

const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
  defaultBand: { fairness: roundRobin() },
  bands: [{ priority: 100 }, { priority: 0, fairness: roundRobin() }],
});

/** @param {string} name */
async function work(name) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  console.log(`  ran ${name}`);
}

/**
 * @param {string} name
 * @param {string} fairnessId
 * @param {number} [priority]
 * @param {AbortSignal} [signal]
 */
async function submit(name, fairnessId, priority = 0, signal) {
  const outcome = await flow.enqueue({ byteSize: name.length, signal }, { fairnessId, priority });
  if (outcome.type !== 'Dispatched') {
    console.log(`  ${outcome.type} ${name}: ${outcome.reason} after ${outcome.queuedMs.toFixed(0)} ms`);
    return;
  }
  try {
    await work(name);
  } finally {
    outcome.lease.release();
  }
}

console.log('One seat; alice sends three, then bob two, then premium one. Alice takes one back:');
const abort = new AbortController();
const all = [
  submit('alice 1', 'alice'),
  submit('alice 2', 'alice'),
  submit('alice 3', 'alice', 0, abort.signal),
  submit('bob 1', 'bob'),
  submit('bob 2', 'bob'),
  submit('premium', 'carol', 100),
];
abort.abort();
await Promise.all(all);

const { dispatched, evicted, waiting, inFlight } = flow.stats();
console.log(`${dispatched} dispatched, ${evicted} evicted, ${waiting} waiting, ${inFlight} in flight`);
await flow.close();
