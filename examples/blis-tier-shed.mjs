// @ts-check
// A policy file of the simulator BLIS at a gateway: under overload, tier shedding refuses the lower classes, and a tenant's sheddable
// requests are held to its budget also while there is room.
import { EndpointPool, FlowController, utilizationDetector } from 'headgate';
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
console.log(`Time-to-first-token targets: ${[...sloTargetsMs].map(([sloClass, ms]) => `${sloClass} ${ms} ms`).join(', ')}`);
console.log(`Budgets: acme ${(tenantBudgets.acme ?? 1) * pool.endpoints.length * longestBatch} of ${pool.endpoints.length * longestBatch} requests`);

const flow = new FlowController({ pool, admission, saturationDetector: utilizationDetector() });
/** @type {Record<string, number>} */
let shedByTier = {};
flow.on('dropped', ({ outcome }) => {
  const tier = Object.keys(classes).find((name) => sloClasses.priorityOf(name) === outcome.priority) ?? outcome.priority;
  shedByTier[tier] = (shedByTier[tier] ?? 0) + 1;
});
/** Requests of each class in one burst. */
const classes = { critical: 3, standard: 3, batch: 3, sheddable: 3, background: 3 };

/** @type {import('headgate').Lease[]} */
const leases = [];

/** @param {string} tenant */
async function burst(tenant) {
  shedByTier = {};
  /** @type {Map<string, number>} */
  const refusals = new Map();
  for (const [sloClass, count] of Object.entries(classes)) {
    const priority = sloClasses.priorityOf(sloClass);
    for (let i = 0; i < count; i++) {
      const request = { byteSize: 500, sloTtftMs: sloTargetsMs.get(sloClass) };
      const outcome = await flow.enqueue(request, { fairnessId: tenant, priority });
      if (outcome.type === 'Dispatched') leases.push(outcome.lease);
      else refusals.set(`${outcome.policy}: ${outcome.detail}`, (refusals.get(`${outcome.policy}: ${outcome.detail}`) ?? 0) + 1);
    }
  }
  const shed = Object.entries(shedByTier).map(([tier, count]) => `${tier} ${count}`);
  console.log(`  ${tenant}: ${leases.length} run; shed by tier: ${shed.join(', ') || 'none'}`);
  for (const [refusal, count] of refusals) console.log(`    ${count} × ${refusal}`);
  for (const lease of leases.splice(0)) lease.release();
}

/** @param {number} runningRequests */
function report(runningRequests) {
  for (const { id } of pool.endpoints) pool.report(id, { waitingQueueSize: 0, runningRequests, kvCacheUsage: 0.1 });
}

console.log('Idle instances; each class sends three requests:');
report(0);
await burst('acme');
report(0);
await burst('other');

console.log('Each instance reports 13 running requests:');
report(13);
await burst('other');
await flow.close();
