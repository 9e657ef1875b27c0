// @ts-check
// Own GPUs first, a provider after: chat may go to the provider once it has waited 200 ms, within a budget of money;
// batch never does. Time is simulated, so that the program ends at once.
import assert from 'node:assert/strict';
import { concurrencyDetector, EndpointPool, explainWait, FlowController, quotaDetector } from 'headgate';
import { ManualClock } from 'headgate/testing';

/** @import { FlowRequest } from 'headgate' */

const clock = new ManualClock();
const pool = new EndpointPool();
pool.add('gpu-0', { labels: { group: 'own' } });
pool.add('gpu-1', { labels: { group: 'own' } });
pool.add('provider', { labels: { group: 'paid' }, weight: 8 });

const bands = [
  { priority: 100, endpoints: ['own', { group: 'paid', after: '200ms' }] },
  { priority: -10, endpoints: ['own'] },
];
const budget = quotaDetector({
  groups: [{ by: 'label', label: 'group', is: 'paid', quotas: [{ unit: 'cost', limit: 0.1, per: '1h' }] }],
  prices: { input: 3, output: 15 },
});
const saturationDetector = concurrencyDetector({ maxConcurrency: 4 });
const flow = new FlowController({ pool, saturationDetector, bands, constraints: [budget], clock });

/** @param {number} priority @returns {FlowRequest & { inputTokens: number, maxOutputTokens: number }} */
function send(priority) {
  const request = { byteSize: 4_000, inputTokens: 1_000, maxOutputTokens: 1_000 }; // 0.018 at the provider
  void flow.enqueue(request, { fairnessId: 'acme', priority });
  return request;
}

const groups = () => Object.fromEntries(flow.figures().groups.map(({ group, inFlight }) => [group, inFlight]));

for (let i = 0; i < 4; i++) send(-10);
for (let i = 0; i < 16; i++) send(100);
const waits = send(100);
assert.deepEqual(groups(), { own: 8, paid: 0 });
clock.advance(80);
console.log(explainWait(flow, waits)?.text);
assert.match(explainWait(flow, waits)?.text ?? '', /waits for own; may use paid in 120 ms/);

clock.advance(120);
assert.deepEqual(groups(), { own: 8, paid: 5 }); // the budget of an hour is used up
console.log(explainWait(flow, waits)?.text);

for (const id of ['gpu-0', 'gpu-1']) pool.update(id, { state: 'ill' });
send(-10);
clock.advance(1_000);
assert.deepEqual(groups(), { own: 8, paid: 5 });
console.log('The GPUs are ill: batch waits for them, chat for the budget.');
await flow.close();
