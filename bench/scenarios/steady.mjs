// As many producers as a busy gateway has connections; each waits for its result before it sends the next request.
import { microtaskJob } from '../lib/jobs.mjs';
import { Ledger } from '../lib/ledger.mjs';
import { concurrency, noOptions, nsPerOp } from '../lib/measure.mjs';

const producers = 64;

async function run(subject, jobs) {
  const ledger = new Ledger(jobs, subject.caps.limit === false ? producers : concurrency);
  const gate = subject.create({ concurrency });
  let next = 0;
  let sum = 0;
  async function produce() {
    while (next < jobs) {
      const result = await gate.submit(microtaskJob(ledger, next++), noOptions);
      sum += result;
    }
  }
  const startedAtMs = performance.now();
  await Promise.all(Array.from({ length: producers }, produce));
  const ns = nsPerOp(startedAtMs, jobs);
  ledger.verify(jobs);
  if (sum !== (jobs * (jobs - 1)) / 2) throw new Error('results were mixed up');
  await gate.close();
  return { ns };
}

export default [{ name: 'steady', title: 'steady: 64 producers, one request each at a time', jobs: 200_000, run }];
