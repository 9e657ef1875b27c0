// Everything arrives in one turn, and is run through a few seats.
import { microtaskJob, nextTurnJob } from '../lib/jobs.mjs';
import { Ledger, verifyResults } from '../lib/ledger.mjs';
import { concurrency, noOptions, nsPerOp } from '../lib/measure.mjs';

const burstOf = (makeJob) =>
  async function run(subject, jobs) {
    const ledger = new Ledger(jobs, subject.caps.limit === false ? jobs : concurrency);
    const gate = subject.create({ concurrency });
    const results = new Array(jobs);
    const startedAtMs = performance.now();
    for (let i = 0; i < jobs; i++) results[i] = gate.submit(makeJob(ledger, i), noOptions);
    const values = await Promise.all(results);
    const ns = nsPerOp(startedAtMs, jobs);
    ledger.verify(jobs);
    verifyResults(values);
    await gate.close();
    return { ns };
  };

export default [
  { name: 'burst', title: 'burst: 100,000 requests in one turn', jobs: 100_000, run: burstOf(microtaskJob) },
  {
    name: 'burst-io',
    title: 'burst-io: the same, each job ends in a later turn',
    jobs: 100_000,
    run: burstOf(nextTurnJob),
  },
];
