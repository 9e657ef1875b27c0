// Eight priorities arrive mixed in one turn, and must leave highest first.
import { microtaskJob } from '../lib/jobs.mjs';
import { Ledger, verifyResults } from '../lib/ledger.mjs';
import { concurrency, nsPerOp } from '../lib/measure.mjs';

const priorities = 8;
const options = Array.from({ length: priorities }, (_, priority) => ({ priority }));

/** The first few start at once, whatever they are. */
class OrderedLedger extends Ledger {
  overtaken = 0;
  #lowest = priorities;

  start(index) {
    super.start(index);
    if (this.ran <= concurrency) return;
    const priority = index % priorities;
    if (priority > this.#lowest) this.overtaken++;
    this.#lowest = priority;
  }
}

async function run(subject, jobs) {
  const ledger = new OrderedLedger(jobs, concurrency);
  const gate = subject.create({ concurrency, priorities });
  const results = new Array(jobs);
  const startedAtMs = performance.now();
  for (let i = 0; i < jobs; i++) results[i] = gate.submit(microtaskJob(ledger, i), options[i % priorities]);
  const values = await Promise.all(results);
  const ns = nsPerOp(startedAtMs, jobs);
  ledger.verify(jobs);
  verifyResults(values);
  if (ledger.overtaken > 0) throw new Error(`${ledger.overtaken} requests were overtaken by lower priorities`);
  await gate.close();
  return { ns };
}

export default [
  {
    name: 'priorities',
    title: 'priorities: 100,000 requests of 8 priorities in one turn',
    jobs: 100_000,
    needs: ['priority'],
    run,
  },
];
