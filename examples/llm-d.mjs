// @ts-check
// llm-d's flow control from its own YAML: three priority bands and three tenants share twelve seats, and a burst asks
// for sixty-nine.
import { setTimeout as delay } from 'node:timers/promises';
import { EndpointPool, FlowController, overviewOf } from 'headgate';
import { loadConfig } from 'headgate/config';
import { toHttpResponse } from 'headgate/http';

const { options, objectives, warnings } = loadConfig(`
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceObjective
metadata: { name: premium-traffic }
spec: { priority: 100, poolRef: { name: default-pool } }
---
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceObjective
metadata: { name: best-effort-traffic }
spec: { priority: -10, poolRef: { name: default-pool } }
---
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
featureGates: [flowControl]
plugins:
- type: round-robin-fairness-policy
- type: concurrency-detector
  parameters: { maxConcurrency: 4, concurrencyMode: requests, headroom: 0.0 }
saturationDetector: { pluginRef: concurrency-detector }
flowControl:
  maxBytes: "500Mi"
  maxRequests: "1k"
  defaultRequestTTL: "60s"
  priorityBands:
  - { priority: 100, maxRequests: "500", fairnessPolicyRef: round-robin-fairness-policy }
  # flowLimits is headgate's: without it, one tenant's burst can fill the whole band.
  - { priority: 0, maxRequests: "200", fairnessPolicyRef: round-robin-fairness-policy, flowLimits: { maxRequests: "20" } }
  - { priority: -10, maxRequests: "5", fairnessPolicyRef: round-robin-fairness-policy }
`);
for (const warning of warnings) console.log(`warning: ${warning}`);

const pool = new EndpointPool();
for (const server of ['server-1', 'server-2', 'server-3']) pool.add(server);
const flow = new FlowController({ ...options, pool });

/** @type {string[]} */
const order = [];
/** @type {Map<string, Record<string, number>>} */
const answers = new Map();

/**
 * @param {string} tenant
 * @param {string} [objective] a name that no objective has counts as priority 0
 */
async function send(tenant, objective = 'none') {
  const outcome = await flow.enqueue({ byteSize: 2000 }, { fairnessId: tenant, priority: objectives.get(objective) });
  let answer = '200';
  if (outcome.type === 'Dispatched') {
    order.push(tenant);
    await delay(20); // the model server generates
    outcome.lease.release();
  } else {
    const { status, headers } = toHttpResponse(outcome, { contract: 'llm-d' });
    answer = `${status} ${headers['x-llm-d-request-dropped-reason']}`;
  }
  const counts = answers.get(tenant) ?? {};
  answers.set(tenant, { ...counts, [answer]: (counts[answer] ?? 0) + 1 });
}

/** Neighbours that are equal become one entry. @param {string[]} names */
function runs(names) {
  /** @type {[name: string, count: number][]} */
  const found = [];
  for (const name of names) {
    const last = found.at(-1);
    if (last?.[0] === name) last[1]++;
    else found.push([name, 1]);
  }
  return found.map(([name, count]) => (count === 1 ? name : `${count} × ${name}`));
}

const times = (/** @type {number} */ count, /** @type {() => Promise<void>} */ work) =>
  Array.from({ length: count }, work);
const burst = [
  ...times(20, () => send('nightly', 'best-effort-traffic')),
  ...times(30, () => send('noisy')),
  ...times(4, () => send('polite')),
  ...times(15, () => send('paying', 'premium-traffic')),
];
const { waiting, inFlight, saturation } = flow.stats();
console.log(
  `After the burst: ${inFlight} in flight on ${pool.endpoints.length} servers (saturation ${saturation}), ${waiting} waiting`,
);
for (const band of overviewOf(flow, { flows: 'all' }).bands)
  console.log(`  priority ${band.priority}: ${band.waiting} of at most ${band.limits.maxRequests} waiting`);
await Promise.all(burst);

console.log('Order of dispatch: the seats were taken when the others came; then priority, then turns:');
console.log(`  ${runs(order).join(', ')}`);
console.log('Answers:');
for (const [tenant, counts] of answers)
  console.log(
    `  ${tenant}: ${Object.entries(counts)
      .map(([answer, count]) => `${count} × ${answer}`)
      .join(', ')}`,
  );
await flow.close();
