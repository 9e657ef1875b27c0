// @ts-check
// Agents beside chat: one agent and the forty that it began are one flow of their tenant, beside ten people who chat.
import assert from 'node:assert/strict';
import { FlowController, hierarchical } from 'headgate';
import { families } from 'headgate/http';

const agents = families();
const fairness = hierarchical({ levels: ['virtual-token-counter', 'virtual-token-counter'] });
const flow = new FlowController({
  maxConcurrency: 12,
  bands: [{ priority: 0, fairness, ordering: agents.lastChildFirst, maxInFlightPerFlow: 8 }],
});
// What stands before the controller names families: flowControl(gate, …), flowFetch(gate, …), or as here.
const gate = agents.gate(flow);

/** @type {string[]} */
const order = [];

/**
 * @param {string} sessionId
 * @param {string} [parentSessionId]
 */
async function turn(sessionId, parentSessionId) {
  const request = { byteSize: 100, tokens: 500, sessionId, parentSessionId };
  const outcome = await gate.enqueue(request, { fairnessId: 'acme' });
  if (outcome.type !== 'Dispatched') throw new Error(outcome.reason);
  order.push(sessionId);
  await new Promise((resolve) => setTimeout(resolve, 5));
  outcome.lease.release();
}

await turn('planner');
const children = Array.from({ length: 40 }, (_, i) => turn(`worker-${i}`, 'planner'));
const { inFlight, waiting } = flow.stats();
console.log(`Of 40 workers ${inFlight} run and ${waiting} wait, though there are 12 seats.`);
assert.deepEqual([inFlight, waiting], [8, 32]);

const chats = Array.from({ length: 10 }, (_, i) => turn(`chat-${i}`));
await Promise.all(chats);
const passed = order.filter((name) => name.startsWith('worker')).length;
console.log(`All ten chats had their turn when ${passed} of 40 workers had theirs.`);
assert.ok(passed < 32);
await Promise.all([...children, turn('planner')]);
