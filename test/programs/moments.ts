/** Controllers in the two states that the inspector's screenshots show: calm, and with more to do than fits. */
import {
  capacityLedger,
  concurrencyDetector,
  EndpointPool,
  FlowController,
  globalStrict,
  quotaDetector,
  roundRobin,
  sessionLimit,
} from '../../src/index.js';
import type { InspectedShares } from '../../src/observability/inspector/index.js';

const tenants = [
  'acme',
  'borealis',
  'cobalt-labs',
  'delta',
  'ember',
  'fjord',
  'granite',
  'harbor',
  'iris',
  'juniper',
  'kestrel',
  'lumen',
];

function gateway(maxConcurrency: number): { flow: FlowController; pool: EndpointPool } {
  const pool = new EndpointPool();
  const flow = new FlowController({
    pool,
    saturationDetector: concurrencyDetector({ maxConcurrency }),
    bands: [
      { priority: 100, fairness: roundRobin(), limits: { maxRequests: 2_000 } },
      { priority: 0, fairness: roundRobin(), limits: { maxRequests: 20_000 } },
      { priority: -10, fairness: globalStrict(), limits: { maxRequests: 5_000 } },
    ],
    limits: { maxRequests: 25_000, maxBytes: '10Gi' },
    defaultRequestTtl: '10m',
  });
  for (let i = 1; i <= 6; i++) pool.add(`llama-70b-${i}`);
  return { flow, pool };
}

/** A traffic of the moment: who asks, how often, and what a request takes. */
interface Traffic {
  readonly everyMs: number;
  readonly workMs: number;
  readonly burst: number;
}

/** Keeps a controller busy until `stop`, as a gateway would. The same requests in the same order each time. */
function drive(
  { flow, pool }: { flow: FlowController; pool: EndpointPool },
  { everyMs, workMs, burst }: Traffic,
): () => Promise<void> {
  let count = 0;
  const running = new Set<ReturnType<typeof setTimeout>>();
  async function one(): Promise<void> {
    const number = count++;
    const priority = number % 11 === 0 ? 100 : number % 4 === 0 ? -10 : 0;
    const fairnessId = tenants[
      Math.min((number * 7 + (number >> 3)) % tenants.length, (number * 5 + (number >> 4)) % tenants.length)
    ] as string;
    const ttlMs = number % 9 === 0 ? workMs * 3 : undefined;
    const outcome = await flow.enqueue(
      { byteSize: 2_000 + (number % 7) * 900, tokens: 300, ttlMs },
      { fairnessId, priority },
    );
    if (outcome.type !== 'Dispatched') return;
    const timer = setTimeout(
      () => {
        running.delete(timer);
        outcome.lease.release();
      },
      workMs * (0.6 + (number % 5) / 5),
    );
    running.add(timer);
  }
  const report = (): void => {
    for (const [index, { id, inFlightRequests }] of pool.endpoints.entries()) {
      const kvCacheUsage = Math.min(0.97, 0.06 * inFlightRequests + 0.03 * index);
      pool.report(id, {
        waitingQueueSize: Math.max(0, inFlightRequests - 6),
        runningRequests: Math.min(inFlightRequests, 6),
        kvCacheUsage,
      });
    }
  };
  const timer = setInterval(() => {
    for (let i = 0; i < burst; i++) void one();
    report();
  }, everyMs);
  return async () => {
    clearInterval(timer);
    for (const each of running) clearTimeout(each);
    await flow.close();
  };
}

export interface Moment {
  readonly flow: FlowController;
  stop(): Promise<void>;
}

/** Less than fits: nothing waits for long. */
export function calmMoment(): Moment {
  const host = gateway(15);
  return { flow: host.flow, stop: drive(host, { everyMs: 40, workMs: 700, burst: 2 }) };
}

/** Three times what fits, some of it impatient, one endpoint refusing work. */
export function saturatedMoment(): Moment {
  const host = gateway(8);
  const stop = drive(host, { everyMs: 20, workMs: 700, burst: 4 });
  host.pool.markOverloaded('llama-70b-5', 600_000);
  return { flow: host.flow, stop };
}

/** Two keys with quotas, one of which rests, sessions of which one waits, and a tenant at its cap. Nothing moves. */
export function hostedMoment(): Moment {
  const pool = new EndpointPool();
  for (const id of ['key-1', 'key-2']) pool.add(id);
  const quotas = quotaDetector({
    groups: [
      {
        by: 'endpoint',
        quotas: [
          { unit: 'requests', limit: 10 },
          { unit: 'tokens', limit: 10_000 },
        ],
      },
    ],
  });
  const flow = new FlowController({
    pool,
    constraints: [quotas, sessionLimit({ by: 'fairnessId', maxSessions: 2 })],
    bands: [{ priority: 0, maxInFlightPerFlow: 2 }],
  });
  const ask = (fairnessId: string): void => {
    void flow.enqueue({ byteSize: 100, tokens: 700 }, { fairnessId, priority: 0 });
  };
  for (const tenant of ['acme', 'acme', 'acme', 'borealis', 'cobalt-labs']) ask(tenant);
  const put = flow.tryEnqueue({ byteSize: 1, tokens: 1 }, { fairnessId: 'borealis', priority: 0 });
  if (put?.type !== 'Dispatched') throw new Error('expected a dispatch');
  put.lease.answered({ status: 429, headers: { 'retry-after': '600' } });
  return { flow, stop: () => flow.close() };
}

/** A server whose cache is all but full, by a ledger, and one that is idle. Nothing moves. */
export function countedMoment(): Moment {
  const pool = new EndpointPool();
  for (const id of ['gpu-1', 'gpu-2']) pool.add(id);
  const flow = new FlowController({ pool, constraints: [capacityLedger({ slots: 64, kvTokens: 20_000 })] });
  const request = { byteSize: 1, inputTokens: 17_000, maxOutputTokens: 1_000, endpointSubset: ['gpu-1'] };
  void flow.enqueue(request, { fairnessId: 'acme', priority: 0 });
  return { flow, stop: () => flow.close() };
}

const store = {
  calls: 10,
  misses: 2,
  isBreakerOpen: true,
  latencyMs: 1,
  problem: {
    message: 'pool "chat": the store cannot be reached (connect ECONNREFUSED 10.0.0.9:6379): check that it runs',
  },
};

/** A lease that holds, one that is over, and two quotas, one of which goes by this replica's own part. */
export const sharedMoment: InspectedShares = {
  leases: [
    { name: undefined, cap: 20, inFlight: 18, leaseAgeMs: 700, overAdmission: 0 },
    { name: 'a-model-server-with-a-long-name', cap: 16, inFlight: 19, leaseAgeMs: 6_200, overAdmission: 3 },
  ].map(({ name, ...lease }) => ({
    ...lease,
    pool: 'chat',
    endpoint: name,
    unit: 'requests' as const,
    limit: 64,
    granted: 20,
    safeShare: 16,
    replicas: 4,
    held: 60,
    isExpired: lease.overAdmission > 0,
    isLearning: false,
    epochChanges: 1,
    store,
  })),
  quotas: { status: [{ isLocal: true }, { isLocal: false }], store: { ...store, calls: 0, misses: 0 } },
};

/** `flows` flows of one request each, and no seat for any of them. */
export function crowdedMoment(flows: number): Moment {
  const host = gateway(1);
  for (let i = 0; i < 6; i++) void host.flow.enqueue({ byteSize: 1 }, { fairnessId: 'running', priority: 100 });
  for (let i = 0; i < flows; i++) void host.flow.enqueue({ byteSize: 100 }, { fairnessId: `tenant-${i}`, priority: 0 });
  return { flow: host.flow, stop: () => host.flow.close() };
}
