// Every request comes from a flow of its own, as sessions do.
import { microtaskJob } from '../lib/jobs.mjs';
import { Ledger } from '../lib/ledger.mjs';
import { concurrency, heapBytes, nsPerOp } from '../lib/measure.mjs';

const producers = 64;

async function run(subject, jobs) {
  const ledger = new Ledger(jobs, concurrency);
  const gate = subject.create({ concurrency, keyed: true });
  const emptyBytes = heapBytes();
  let next = 0;
  async function produce() {
    while (next < jobs) {
      const index = next++;
      await gate.submit(microtaskJob(ledger, index), { key: `session-${index}` });
    }
  }
  const startedAtMs = performance.now();
  await Promise.all(Array.from({ length: producers }, produce));
  const ns = nsPerOp(startedAtMs, jobs);
  ledger.verify(jobs);
  const keptBytes = (heapBytes() - emptyBytes) / jobs;
  const keptFlows = gate.keyCount();
  await gate.close();
  return { ns, keptFlows, keptBytes };
}

export default [
  { name: 'churn', title: 'churn: a new flow with every request, 64 producers', jobs: 100_000, needs: ['keys'], run },
];
