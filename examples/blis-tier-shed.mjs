// @ts-check
// A policy file of the simulator BLIS at a gateway: under overload, tier shedding refuses the lower classes, and a
// tenant's sheddable requests are held to its budget also while there is room.
import { concurrencyDetector, EndpointPool, FlowController } from 'headgate';
import { loadBlisPolicy } from 'headgate/config';

const longestBatch = 8;
const pool = new EndpointPool();
for (const instance of ['instance-0', 'instance-1']) pool.add(instance);

const { admission, sloClasses, sloTargetsMs, tenantBudgets, warnings } = loadBlisPolicy(
  `
admission:
  policy: tier-shed
  tier_shed_threshold: 12     # waiting + running + in flight, of the busiest instance
  tier_shed_min_priority: 3   # critical and standard; sheds the rest
  slo_targets: { critical: 100000, standard: 500000 }
tenant_budgets: { acme: 0.25 }
routing:
  policy: least-loaded
`,
  { capacity: pool.endpoints.length * longestBatch },
);
for (const warning of warnings) console.log(`warning: ${warning}`);
console.log(
  `Time-to-first-token targets: ${[...sloTargetsMs].map(([sloClass, ms]) => `${sloClass} ${ms} ms`).join(', ')}`,
);
console.log(
  `Budgets: acme ${(tenantBudgets.acme ?? 1) * pool.endpoints.length * longestBatch} of ${pool.endpoints.length * longestBatch} requests`,
);

// Without --flow-control, BLIS has no queue: what is admitted goes.
const flow = new FlowController({
  pool,
  admission,
  mode: 'admission',
  saturationDetector: concurrencyDetector({ maxConcurrency: longestBatch }),
});

/** Three requests of each class, all in flight together. @param {string} tenant */
async function burst(tenant) {
  /** @type {import('headgate').Lease[]} */
  const leases = [];
  console.log(`  ${tenant}:`);
  for (const sloClass of ['critical', 'standard', 'batch', 'sheddable', 'background']) {
    const key = { fairnessId: tenant, priority: sloClasses.priorityOf(sloClass) };
    let admitted = 0;
    let why = '';
    for (let i = 0; i < 3; i++) {
      const outcome = await flow.enqueue({ byteSize: 500, sloTtftMs: sloTargetsMs.get(sloClass) }, key);
      if (outcome.type === 'Dispatched') {
        leases.push(outcome.lease);
        admitted++;
      } else {
        why = `; ${outcome.policy}: ${outcome.detail}`;
      }
    }
    console.log(`    ${sloClass.padEnd(10)} ${String(key.priority).padStart(2)}: ${admitted} of 3 admitted${why}`);
  }
  for (const lease of leases) lease.release();
}

/** @param {number} runningRequests */
function report(runningRequests) {
  for (const { id } of pool.endpoints) pool.report(id, { waitingQueueSize: 0, runningRequests, kvCacheUsage: 0.1 });
}

console.log('Idle instances:');
report(0);
await burst('acme');
report(0);
await burst('other');

console.log('Each instance reports 13 running requests:');
report(13);
await burst('other');
await flow.close();
