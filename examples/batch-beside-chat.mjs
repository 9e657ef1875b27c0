// @ts-check
// Batch beside chat: batch takes what chat leaves, never holds more than half of the seats, and gets a tenth of the
// turns at least.
import assert from 'node:assert/strict';
import { concurrencyDetector, FlowController } from 'headgate';

const seats = 8;
const flow = new FlowController({
  saturationDetector: concurrencyDetector({ maxConcurrency: seats }),
  bands: [
    { priority: 10 },
    // One flow: whatever sends batch work shares it.
    { priority: -10, maxInFlightPerFlow: seats / 2, minShare: 0.1, requestTtl: '1h' },
  ],
});

/** @type {{ chat: number, batch: number }} */
const served = { chat: 0, batch: 0 };
let mostBatch = 0;
let batchNow = 0;

/** @param {'chat' | 'batch'} kind */
function send(kind) {
  const key =
    kind === 'chat' ? { fairnessId: `user-${served.chat % 5}`, priority: 10 } : { fairnessId: 'batch', priority: -10 };
  return flow.run({ byteSize: 100 }, key, async () => {
    if (kind === 'batch') mostBatch = Math.max(mostBatch, ++batchNow);
    await new Promise((resolve) => setTimeout(resolve, 2));
    if (kind === 'batch') batchNow--;
    served[kind]++;
  });
}

const batch = Array.from({ length: 60 }, () => send('batch'));
assert.equal(flow.stats().inFlight, seats / 2);
console.log(
  `60 batch requests came first: ${flow.stats().inFlight} of ${seats} seats are theirs, the rest is free for chat.`,
);

const first = await send('chat').then(() => served.batch);
console.log(`A chat request goes at once, while ${60 - first} batch requests are left.`);

const chat = Array.from({ length: 200 }, () => send('chat'));
await Promise.all(chat);
console.log(`While 200 chat requests kept every seat busy, batch went on: ${served.batch} of 60 are done.`);
assert.ok(served.batch >= 10, 'batch starved');
assert.ok(served.batch < 60, 'batch did not make room');
await Promise.all(batch);
console.log(`Batch is done as well; it held ${mostBatch} seats at most.`);
assert.ok(mostBatch <= seats / 2);
