/** A worker, as a process or a thread: its requests are connections to an observer, which sees when they are gone. */
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { FlowController } from '../../../src/index.js';
import { sharedConcurrency } from '../../../src/redis/index.js';
import { workerStore } from '../../../src/redis/workers/index.js';
import { type Plan, timing } from './plan.js';

const plan: Plan = workerData ?? JSON.parse(process.env.WORKER_PLAN ?? '');
const random = seededRandom(plan.seed);
const shared = sharedConcurrency(workerStore(parentPort ?? process), { ...timing, maxConcurrency: plan.limit });
const flow = new FlowController({ saturationDetector: shared, defaultRequestTtl: 0 });
shared.attach(flow);

/** Ends when the observer has seen the end: it never counts what was given back. */
function request(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(plan.port, '127.0.0.1', () => delay(5 + 20 * random()).then(() => socket.end()));
    socket.resume().on('error', () => {});
    socket.once('close', () => resolve());
  });
}

async function client(): Promise<never> {
  for (;;) {
    const outcome = await flow.enqueue({ byteSize: 1 }, { fairnessId: 'tenant', priority: 0 });
    if (outcome.type !== 'Dispatched') throw new Error(outcome.type);
    await request();
    outcome.lease.release();
  }
}
for (let n = 0; n < plan.limit; n++) void client();
process.on('disconnect', () => process.exit());
