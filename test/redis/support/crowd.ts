/**
 * Many thin replicas on a real store in virtual time: a detector each, requests that are numbers, and no controller.
 *
 * Invariant: what is in flight on an endpoint is counted over all replicas at every step.
 */
import type { Redis } from 'ioredis';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { type LeasedDetector, type LeaseOptions, sharedEndpointConcurrency } from '../../../src/redis/index.js';
import { VirtualWorld } from './virtual-world.js';

export interface CrowdPlan {
  readonly seed: number;
  readonly replicas: number;
  readonly endpoints: number;
  /** Of each endpoint. */
  readonly limit: number;
  /** Requests that a replica wants to have under way. */
  readonly demand: (replica: number) => number;
  readonly warmUpMs: number;
  readonly lastsMs: number;
}

export interface CrowdFinding {
  /** The most in flight above the limit of any endpoint. */
  readonly mostOver: number;
  /** Of all seats, after the warm-up. */
  readonly utilization: number;
  /** Requests of each replica. */
  readonly served: readonly number[];
  readonly callsPerSecond: number;
  /** The store's processor time, of the virtual time. */
  readonly coreOfStore: number;
}

interface ThinEndpoint {
  readonly id: string;
  readonly weight: number;
  inFlightRequests: number;
  readonly inFlightTokens: number;
}

interface ThinReplica {
  readonly shared: LeasedDetector;
  readonly endpoints: readonly ThinEndpoint[];
  inFlightRequests: number;
  readonly inFlightTokens: number;
  waiting: number;
}

const serviceMs = { from: 1_000, to: 5_000 };
let crowds = 0;

async function processorMs(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = [/used_cpu_sys:([\d.]+)/, /used_cpu_user:([\d.]+)/].map((part) => Number(part.exec(info)?.[1]));
  return 1_000 * seconds.reduce((a, b) => a + b);
}

export async function crowd(redis: Redis, plan: CrowdPlan, options: Partial<LeaseOptions> = {}): Promise<CrowdFinding> {
  const { replicas, endpoints, limit, warmUpMs, lastsMs } = plan;
  const world = new VirtualWorld(redis);
  const random = seededRandom(plan.seed);
  const pool = `crowd-${process.pid}-${crowds++}`;
  const inFlight = new Array<number>(endpoints).fill(0);
  const served = new Array<number>(replicas).fill(0);
  let all = 0;
  let mostOver = 0;
  let used = 0;
  let sinceMs = 0;

  function change(endpoint: number, step: number): void {
    used += all * Math.max(0, world.now() - Math.max(sinceMs, warmUpMs));
    sinceMs = world.now();
    all += step;
    inFlight[endpoint]! += step;
    mostOver = Math.max(mostOver, inFlight[endpoint]! - limit);
  }

  function start(index: number): ThinReplica {
    const client = world.client(() => ({ latencyMs: 1 + 4 * random() }));
    const shared = sharedEndpointConcurrency(client, {
      pool,
      replica: `replica-${index}`,
      maxConcurrency: limit,
      clock: world,
      random,
      ...options,
    });
    const views = Array.from({ length: endpoints }, (_, id) => ({
      id: String(id),
      weight: 1,
      inFlightRequests: 0,
      inFlightTokens: 0,
    }));
    const replica = { shared, endpoints: views, inFlightRequests: 0, inFlightTokens: 0, waiting: plan.demand(index) };
    shared.attach({ stats: () => ({ waiting: replica.waiting }) });
    shared.subscribe?.(() => dispatch(replica, index));
    return replica;
  }

  function dispatch(replica: ThinReplica, index: number): void {
    while (replica.waiting > 0) {
      const nowMs = world.now();
      if (replica.shared.saturation(replica as never, nowMs) >= 1) return;
      const free = replica.shared.filter!(replica.endpoints as never, nowMs);
      const chosen = free[Math.floor(free.length * random())];
      const endpoint = replica.endpoints.find((each) => each.id === chosen?.id);
      if (endpoint === undefined) return;
      replica.waiting--;
      replica.inFlightRequests++;
      endpoint.inFlightRequests++;
      served[index]!++;
      change(Number(endpoint.id), 1);
      const forMs = serviceMs.from + (serviceMs.to - serviceMs.from) * random();
      world.setTimeout(() => {
        replica.waiting++;
        replica.inFlightRequests--;
        endpoint.inFlightRequests--;
        change(Number(endpoint.id), -1);
        dispatch(replica, index);
      }, forMs);
    }
  }

  // They do not begin in one step.
  for (let index = 0; index < replicas; index++)
    world.setTimeout(() => dispatch(start(index), index), 1_000 * random());
  await world.run(warmUpMs);
  const [callsBefore, processorBefore] = [world.storeCalls, await processorMs(redis)];
  await world.run(warmUpMs + lastsMs);
  change(0, 0);
  return {
    mostOver,
    utilization: used / (lastsMs * limit * endpoints),
    served,
    callsPerSecond: (world.storeCalls - callsBefore) / (lastsMs / 1_000),
    coreOfStore: ((await processorMs(redis)) - processorBefore) / lastsMs,
  };
}
