// Tenants that take turns. Each tenant's requests arrive as one block, so that first come, first served would be seen.
import { microtaskJob } from '../lib/jobs.mjs';
import { Ledger, verifyResults } from '../lib/ledger.mjs';
import { concurrency, nsPerOp } from '../lib/measure.mjs';

/** No tenant may be ahead of an even share by more than the seats that it took before the others had arrived. */
class FairLedger extends Ledger {
  unfair = 0;
  #started;
  #perTenant;

  constructor(jobs, tenants) {
    super(jobs, concurrency);
    this.#started = new Uint32Array(tenants);
    this.#perTenant = Math.ceil(jobs / tenants);
  }

  start(index) {
    super.start(index);
    const started = ++this.#started[Math.floor(index / this.#perTenant)];
    if (started > this.ran / this.#started.length + concurrency + 1) this.unfair++;
  }
}

function keyedBy(tenants) {
  return async function run(subject, jobs) {
    const served = Math.min(tenants, jobs);
    const perTenant = Math.ceil(jobs / served);
    const options = Array.from({ length: served }, (_, tenant) => ({ key: `tenant-${tenant}` }));
    const ledger = new FairLedger(jobs, served);
    const gate = subject.create({ concurrency, keyed: true });
    const results = new Array(jobs);
    const startedAtMs = performance.now();
    for (let i = 0; i < jobs; i++)
      results[i] = gate.submit(microtaskJob(ledger, i), options[Math.floor(i / perTenant)]);
    const values = await Promise.all(results);
    const ns = nsPerOp(startedAtMs, jobs);
    ledger.verify(jobs);
    verifyResults(values);
    if (ledger.unfair > 0) throw new Error(`${ledger.unfair} requests went out of turn`);
    await gate.close();
    return { ns };
  };
}

const sizes = [
  ['1', 1],
  ['100', 100],
  ['10k', 10_000],
  ['100k', 100_000],
];

export default sizes.map(([name, tenants]) => ({
  name: `keyed${name}`,
  family: 'keyed',
  title: `keyed${name}: 100,000 requests of ${tenants.toLocaleString('en-US')} ${tenants === 1 ? 'tenant' : 'tenants in turn'}`,
  jobs: 100_000,
  needs: ['keys'],
  run: keyedBy(tenants),
}));
