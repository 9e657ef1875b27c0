/**
 * Everything that replicas share, through one store, as two replicas would use it. No assertion depends on how long
 * anything takes.
 */
import { expect } from 'vitest';
import { EndpointPool, FlowController, quotaDetector, virtualTokenCounter } from '../../../src/index.js';
import {
  type Store,
  sharedBudgets,
  sharedConcurrency,
  sharedEndpointConcurrency,
  sharedFairness,
  sharedMarks,
  sharedQuotas,
} from '../../../src/redis/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { SessionReplica } from '../../support/session-replica.js';
import { until } from '../support/with-store.js';

type Part = (store: Store, name: string) => Promise<void>;

const key = { fairnessId: 'tenant', priority: 0 };
/** An answer that is late is not what these tests are about. */
const callTimeout = '60s';
const leaseTiming = { refreshInterval: '40ms', leaseDuration: '1s', callTimeout: '1s' } as const;
const patientMs = 120_000;

function become(isTrue: () => boolean, what: () => unknown): Promise<void> {
  return until(isTrue, what, patientMs);
}

async function leases(store: Store, pool: string): Promise<void> {
  const replicas = [0, 1].map(() => sharedConcurrency(store, { pool, maxConcurrency: 10, ...leaseTiming }));
  await become(
    () => replicas.every(({ limit, status }) => limit === 5 && status[0]?.held === 10),
    () => replicas.map(({ status }) => status),
  );
  for (const replica of replicas) await replica.close();
}

/** One call serves the keys of all endpoints: they must be in one slot. */
async function endpointLeases(store: Store, pool: string): Promise<void> {
  const replicas = [0, 1].map(() => {
    const detector = sharedEndpointConcurrency(store, { pool, maxConcurrency: 4, ...leaseTiming });
    const endpoints = new EndpointPool();
    for (const id of ['a', 'b', 'c']) endpoints.add(id);
    const flow = new FlowController({
      saturationDetector: detector,
      pool: endpoints,
      headroom: 'required',
      defaultRequestTtl: 0,
    });
    detector.attach(flow);
    // The detector learns of the endpoints when the first request comes.
    void flow.enqueue({ byteSize: 1 }, key);
    return { detector, flow };
  });
  const each = (): readonly { readonly endpoint: string | undefined; readonly granted: number }[] =>
    replicas.flatMap(({ detector }) => detector.status.map(({ endpoint, granted }) => ({ endpoint, granted })));
  await become(
    () => each().length === 6 && each().every(({ granted }) => granted >= 1 && granted <= 3),
    () => replicas.map(({ detector }) => detector.status),
  );
  for (const { flow, detector } of replicas) {
    await flow.close();
    await detector.close();
  }
}

/** Several budgets are several keys, taken together or not at all. */
async function budgets(store: Store, name: string): Promise<void> {
  const rates = [
    { name: 'requests', limit: 2, per: '24h' },
    { name: 'tokens', limit: 1_000, per: '24h', cost: () => 100 },
  ] as const;
  const [a, b] = [0, 1].map(() => sharedBudgets(store, { name, budgets: rates, callTimeout, fallback: 'closed' }));
  const answers = [await a!.take({}, key), await b!.take({}, key), await a!.take({}, key)];
  expect(answers.map(({ isTaken }) => isTaken)).toEqual([true, true, false]);
  const left = await b!.peek('tenant');
  expect(Math.round(left!.tokens!)).toBe(800);
}

async function fairness(store: Store, name: string): Promise<void> {
  const policy = sharedFairness(store, virtualTokenCounter({ cost: 'requests' }), {
    name,
    interval: '20ms',
    callTimeout,
  });
  const flow = new FlowController({ saturationDetector: () => 1, defaultBand: { fairness: policy, requestTtl: 0 } });
  void flow.enqueue({ byteSize: 1 }, key);
  await become(
    () => policy.exchanges >= 2,
    () => policy.store,
  );
  policy.close();
  await flow.close();
}

async function marks(store: Store, name: string): Promise<void> {
  const pools = [0, 1].map(() => {
    const pool = new EndpointPool();
    pool.add('a');
    return pool;
  });
  const [near, far] = pools as [EndpointPool, EndpointPool];
  const shared = pools.map((pool) => sharedMarks(store, pool, { name }));
  // Nobody says when a subscription is in force.
  const marking = setInterval(() => near.markOverloaded('a', 60_000), 20);
  await become(
    () => far.get('a')!.overloadedUntilMs > 0,
    () => shared,
  );
  clearInterval(marking);
  for (const each of shared) await each.close();
}

async function quotas(store: Store, name: string): Promise<void> {
  const shared = sharedQuotas(store, { name, replicas: 1, callTimeout, fallback: 'closed' });
  const detector = quotaDetector({
    groups: [{ name: 'account', quotas: [{ unit: 'requests', limit: 10, per: '24h' }] }],
  });
  detector.drawFrom(shared);
  const flow = new FlowController({ constraints: [detector], defaultRequestTtl: 0 });
  const outcome = await flow.enqueue({ byteSize: 1 }, key);
  if (outcome.type === 'Dispatched') outcome.lease.release();
  expect([outcome.type, shared.store.problem]).toEqual(['Dispatched', undefined]);
  await flow.close();
  await shared.close();
  expect(shared.store.misses).toBe(0);
}

async function sessions(store: Store, name: string): Promise<void> {
  const clock = new ManualClock();
  const replicas = [0, 1].map(() => new SessionReplica(clock, store, { maxSessions: 1 }, { name }));
  const [one, two] = replicas as [SessionReplica, SessionReplica];
  // It asks the others for their sessions once its subscription is in force.
  await become(
    () => replicas.every(({ shared }) => shared.sent === 1),
    () => replicas.map(({ shared }) => shared.sent),
  );
  one.send('s1');
  await become(
    () => two.resident[1] === 1,
    () => two.resident,
  );
  for (const { shared } of replicas) await shared.close();
}

export const parts: Readonly<Record<string, Part>> = {
  leases,
  'leases of endpoints': endpointLeases,
  budgets,
  fairness,
  marks,
  quotas,
  sessions,
};
