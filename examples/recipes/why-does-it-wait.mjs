// @ts-check
// "Why does my request wait?" Five situations, and what flow.explain says in each.
import assert from 'node:assert/strict';
import { concurrencyDetector, FlowController } from 'headgate';

/** @typedef {Partial<import('headgate').FlowControllerOptions>} Options */

/**
 * One seat, taken by `runs`; `before` wait already. Says what the controller knows of the request that comes last.
 * @param {string} title
 * @param {{ options?: Options, runs: string, before?: [tenant: string, priority: number][], key: [tenant: string, priority: number] }} situation
 */
async function why(title, { options = {}, runs, before = [], key: [fairnessId, priority] }) {
  const flow = new FlowController({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }), ...options });
  const seat = await flow.enqueue({ byteSize: 1 }, { fairnessId: runs, priority: 0 });
  for (const [tenant, band] of before) void flow.enqueue({ byteSize: 1 }, { fairnessId: tenant, priority: band });
  const request = { byteSize: 1 };
  void flow.enqueue(request, { fairnessId, priority });
  const explanation = flow.explain(request);
  assert.ok(explanation, 'it does not wait');
  console.log(`${title}\n  ${explanation.decidedBy}: ${explanation.text}`);
  if (seat.type === 'Dispatched') seat.lease.release();
  await flow.close();
  return explanation;
}

const full = await why('The servers are full.', { runs: 'acme', key: ['acme', 0] });
assert.equal(full.decidedBy, 'gate');

const caps = { saturationDetector: concurrencyDetector({ maxConcurrency: 9 }), bands: [{ priority: 0, maxInFlightPerFlow: 1 }] };
const capped = await why('Servers have room, but this tenant runs what it may.', { options: caps, runs: 'acme', key: ['acme', 0] });
assert.equal(capped.decidedBy, 'cap');

const own = await why('The same tenant came before.', { runs: 'other', before: [['acme', 0]], key: ['acme', 0] });
assert.equal(own.ahead, 1);

const others = await why('Other tenants have their turns.', { runs: 'other', before: [['umbrella', 0]], key: ['acme', 0] });
assert.equal(others.aheadInOtherFlows, 1);

const low = await why('A higher band waits.', { runs: 'other', before: [['premium', 100]], key: ['acme', -10] });
assert.match(low.text, /1 in higher bands/);
