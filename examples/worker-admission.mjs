// @ts-check
// The cap inside a worker: N requests run, Q wait, the rest is refused at once. Then a slow engine: whoever waits too
// long is refused, and after that the newest goes first once. Time is a manual clock's, so that every run prints the
// same.
import { workerAdmission } from 'headgate';
import { ManualClock } from 'headgate/testing';

const clock = new ManualClock();

/**
 * Sends requests to a worker, and says when each of them began to run, or why it did not.
 * @param {string} title
 * @param {import('headgate/types').WorkerAdmission} worker
 * @param {number} serviceMs
 * @param {readonly number[]} arrivalsMs
 */
async function play(title, worker, serviceMs, arrivalsMs) {
  console.log(`\n${title}`);
  const startedAtMs = clock.now();
  const since = () => String(clock.now() - startedAtMs).padStart(4);
  /** @param {string} name */
  const send = async (name) => {
    const arrivedAtMs = clock.now() - startedAtMs;
    const outcome = await worker.acquire();
    if (outcome.type === 'rejected') {
      const answer = outcome.reason === 'queue-full' ? 'Server overloaded: worker at capacity' : outcome.reason;
      console.log(`  ${since()} ms: ${name}, of ${arrivedAtMs} ms, refused: ${answer}`);
      return;
    }
    console.log(`  ${since()} ms: ${name}, of ${arrivedAtMs} ms, runs`);
    clock.setTimeout(() => outcome.lease.release(), serviceMs); // when the engine has sent the last token
  };
  const requests = arrivalsMs.map((atMs, i) => {
    /** @type {Promise<void>} */
    const sent = new Promise((resolve, reject) =>
      clock.setTimeout(() => send(`request ${i + 1}`).then(resolve, reject), atMs),
    );
    return sent;
  });
  for (let ms = 0; ms < 1000; ms++) {
    clock.advance(ms === 0 ? 0 : 1);
    await new Promise((resolve) => setImmediate(resolve)); // lets those that were told act on it
  }
  await Promise.all(requests);
  const { receivedDirect, grantedFifo, grantedLifo, rejectedQueueFull, rejectedQueueDelay } = worker.stats();
  console.log(`  ran at once ${receivedDirect}, oldest first ${grantedFifo}, newest first ${grantedLifo}`);
  console.log(`  refused: queue full ${rejectedQueueFull}, too late ${rejectedQueueDelay}`);
}

await play(
  'N = 2, Q = 3, a burst of eight: never more than N + Q = 5 in the worker',
  workerAdmission({ engineRequestLimit: 2, requestQueueLimit: 3, clock }),
  100,
  [0, 0, 0, 0, 0, 0, 0, 0],
);

await play(
  'N = 1, Q = 10, an engine that takes 200 ms, nobody waits longer than 250 ms: after an expiry the newest goes first, once',
  workerAdmission({ engineRequestLimit: 1, requestQueueLimit: 10, maxQueueDelay: '250ms', clock }),
  200,
  [0, 10, 110, 120, 360, 380],
);

const worker = workerAdmission({ engineRequestLimit: 1, requestQueueLimit: 10, clock });
console.log('\nN = 1 becomes N = 3 while three wait:');
for (let i = 0; i < 4; i++) void worker.acquire();
console.log(`  ${worker.stats().running} running, ${worker.stats().waiting} waiting`);
worker.resize({ engineRequestLimit: 3 });
console.log(`  ${worker.stats().running} running, ${worker.stats().waiting} waiting`);
