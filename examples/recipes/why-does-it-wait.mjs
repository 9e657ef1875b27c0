// @ts-check
// "Why does my request wait?" What flow.explain says, in five situations.
import assert from 'node:assert/strict';
import { concurrencyDetector, explainWait, FlowController } from 'headgate';

// One seat, which a request of acme has. Its second one waits.
const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
});
void flow.enqueue({ byteSize: 1 }, { fairnessId: 'acme' });

const request = { byteSize: 1 };
void flow.enqueue(request, { fairnessId: 'acme' });
const why = explainWait(flow, request);
console.log(`${why?.decidedBy}: ${why?.text}`);
// gate: band 0 gated: saturation 1.00 ≥ ceiling 1.00; about 1.0 s

assert.equal(why?.decidedBy, 'gate');
assert.match(why.text, /^band 0 gated: saturation 1\.00 ≥ ceiling 1\.00/);
await flow.close();

/** @typedef {Partial<import('headgate').FlowControllerOptions>} Options */

/**
 * One seat, taken by `runs`; `before` wait already. Says what the controller knows of the request that comes last.
 * @param {string} title
 * @param {{ options?: Options, runs: string, before?: [tenant: string, priority: number][], key: [tenant: string,
 * priority: number] }} situation
 */
async function explain(title, { options = {}, runs, before = [], key: [fairnessId, priority] }) {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }), ...options });
  const seat = await flow.enqueue({ byteSize: 1 }, { fairnessId: runs, priority: 0 });
  for (const [tenant, band] of before) void flow.enqueue({ byteSize: 1 }, { fairnessId: tenant, priority: band });
  const request = { byteSize: 1 };
  void flow.enqueue(request, { fairnessId, priority });
  const explanation = explainWait(flow, request);
  assert.ok(explanation, 'it does not wait');
  console.log(`${title}\n  ${explanation.decidedBy}: ${explanation.text}`);
  if (seat.type === 'Dispatched') seat.lease.release();
  await flow.close();
  return explanation;
}

const caps = {
  saturationDetector: concurrencyDetector({ maxConcurrency: 9 }),
  bands: [{ priority: 0, maxInFlightPerFlow: 1 }],
};
const capped = await explain('Servers have room, but this tenant runs what it may.', {
  options: caps,
  runs: 'acme',
  key: ['acme', 0],
});
assert.equal(capped.decidedBy, 'cap');

const own = await explain('The same tenant came before.', { runs: 'other', before: [['acme', 0]], key: ['acme', 0] });
assert.equal(own.ahead, 1);

const others = await explain('Other tenants have their turns.', {
  runs: 'other',
  before: [['umbrella', 0]],
  key: ['acme', 0],
});
assert.equal(others.aheadInOtherFlows, 1);

const low = await explain('A higher band waits.', { runs: 'other', before: [['premium', 100]], key: ['acme', -10] });
assert.match(low.text, /1 in higher bands/);
