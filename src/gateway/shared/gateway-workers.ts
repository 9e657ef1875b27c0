/**
 * What the workers of one machine share of a gateway file, through the store that their primary serves.
 *
 *     seats of a concurrency-detector, quotas, sessions, marks, fairness by cost     shared
 *     what may wait, rates of admission, connections                                 each worker has its part
 *     all else                                                                       each worker by itself
 *
 * Invariant: a file that is read and not used takes part in nothing: its part begins with `start`. Leases stay with the
 * worker when the file changes, because a new replica of a limit would count what runs here once more.
 */
import { env } from 'node:process';
import type { Constraint, EndpointPool, FlowFairnessPolicy, PluginRegistry, SaturationDetector } from '../../index.js';
import { type concurrencyDetector, maxOf } from '../../index.js';
import * as redis from '../../redis/index.js';
import type { SessionLimit } from '../../types/index.js';
import type { Connection, SharedStateConfig } from './store-connection.js';

/** A process may be busy. What runs in a worker counts as long as it lives, however silent it is: its end is known. */
const timing = { refreshInterval: 100, leaseDuration: 5_000, callTimeout: 1_000, drainDuration: 7 * 86_400_000 };
const exchangeMs = 250;
const name = 'workers';

/** Policies that keep an account of what flows receive. */
const byCost = /^(?:virtual-token-counter|start-time-fair-queueing|least-service|deficit-round-robin)-fairness-policy$/;

type ConcurrencyLimits = NonNullable<Parameters<typeof concurrencyDetector>[0]>;

/** Questions of operators that all workers answer as one. */
export type OperatorQuestion = 'metrics' | 'demand' | 'readyz' | 'frame' | 'find' | 'thresholds';

export interface WorkerPlace {
  /** Its number, from 1 up, and how many there are: each has this part of what is divided. */
  readonly worker: number;
  readonly count: number;
  /** What the primary serves: its own store, and that of `sharedState`. */
  readonly store: redis.Store & { readonly messages: redis.StoreMessages };
  readonly connection: Connection;
  /** The answer of all workers; `given` is that of this one, or what all are asked. */
  readonly together: (what: OperatorQuestion, given: unknown) => Promise<unknown>;
}

/** What of a configuration each worker has a part of. */
interface Divided {
  readonly flow: object;
  readonly limits: { readonly maxConnections: number; readonly maxSockets: number };
  readonly sharedState?: SharedStateConfig | undefined;
}

type Closing = { close(): unknown };

/** One worker of a gateway, as long as it lives. */
export class GatewayWorkers {
  readonly place: WorkerPlace;
  readonly quotas: redis.SharedQuotas;
  /** What this worker alone answers. Written by the operator routes. */
  answer: (what: OperatorQuestion, given: unknown) => unknown = () => undefined;
  private readonly replica = globalThis.crypto.randomUUID();
  private marks: redis.SharedMarks | undefined = undefined;
  /** By their names, those of the file in force and of the one that was read last; and their limits in the latter. */
  private readonly leases = new Map<string, redis.SharedEndpoints>();
  private limits = new Map<string, number>();
  /** Fairness and sessions: of the file in force, and of the one that was read last. */
  private inForce: Closing[] = [];
  private read: Closing[] = [];

  constructor(place: WorkerPlace) {
    const { store, count } = place;
    this.place = place;
    this.quotas = redis.sharedQuotas(store, { name, replicas: () => count, callTimeout: timing.callTimeout });
  }

  /** A registry that makes the plugins of one file, which share. */
  registry(registry: PluginRegistry): PluginRegistry {
    for (const each of this.read) each.close();
    this.read = [];
    this.limits = new Map();
    const sharing: PluginRegistry = Object.create(registry);
    sharing.create = (type, parameters, references = sharing) => {
      const plugin = registry.create(type, this.partOf(type, parameters), references);
      if (type === 'concurrency-detector' && 'saturation' in plugin) return this.leased(plugin, Object(parameters));
      return byCost.test(type) && 'createSelector' in plugin ? this.exchanged(plugin) : plugin;
    };
    return sharing;
  }

  /** The settings of the file, with the parts of this worker. */
  settings<C extends Divided>(config: C): C {
    const { limits, flow, sharedState } = config;
    const { maxConnections, maxSockets } = limits;
    const { worker, count } = this.place;
    const { replica = env.HEADGATE_REPLICA, replicas } = sharedState?.leases ?? {};
    // Each has a part of the quotas.
    const own = { replica: replica && `${replica}.${worker}`, replicas: replicas && replicas * count };
    return Object({
      ...config,
      flow: this.withParts(flow),
      limits: { ...limits, ...this.parts({ maxConnections, maxSockets }) },
      sharedState: sharedState && { ...sharedState, leases: { ...sharedState.leases, ...own } },
    });
  }

  /** From now on `flow` goes by the file that was read last. */
  start(flow: redis.WaitingFlow, pool: EndpointPool, constraints: readonly Constraint[]): void {
    this.marks ??= redis.sharedMarks(this.place.store, pool, { name });
    for (const [key, lease] of this.leases) {
      const limit = this.limits.get(key);
      if (limit !== undefined) lease.setLimit(limit);
      lease.attach(flow);
      if (limit === undefined && this.leases.delete(key)) this.inForce.push(lease);
    }
    for (const each of this.inForce) each.close();
    this.inForce = this.read;
    this.read = [];
    for (const [index, limit] of constraints.filter((each): each is SessionLimit => 'share' in each).entries())
      this.inForce.push(redis.sharedSessions(this.place.store, limit, { name: `${name}-${index}` }));
  }

  /** A worker asks often, because the primary is near, and its lease ends before that of the machine. */
  timing({ leaseDuration, refreshInterval }: SharedStateConfig['leases']): Partial<redis.LeaseOptions> {
    const ownMs = Math.min(leaseDuration / 2, leaseDuration - 1.5 * refreshInterval);
    const refreshMs = Math.min(timing.refreshInterval, ownMs / 2);
    return { leaseDuration: ownMs, refreshInterval: refreshMs, callTimeout: Math.min(timing.callTimeout, ownMs) };
  }

  get status(): readonly redis.LeaseStatus[] {
    return [...this.leases.values()].flatMap(({ status }) => status);
  }

  /** Gives everything back. Never rejects. */
  async close(): Promise<void> {
    const { leases, inForce, read, quotas, marks } = this;
    await Promise.all([...leases.values(), ...inForce, ...read, quotas, marks].map((each) => each?.close()));
  }

  /** The answer of all workers. */
  async ofAll(what: OperatorQuestion, given = ''): Promise<unknown> {
    return this.place.together(what, what === 'find' ? given : await this.answer(what, given));
  }

  /** The burst of a bucket stays whole, because a larger request would never pass. */
  private partOf(type: string, given: unknown): unknown {
    const { refillPerSecond: rate = 1_000, capacity } = Object(given);
    if (type === 'token-bucket') return { ...Object(given), refillPerSecond: rate / this.place.count };
    return type === 'tenant-budgets' ? { ...Object(given), ...this.parts({ capacity }) } : given;
  }

  /** With a part of all limits on what may wait. */
  private withParts(options: object): object {
    const less = Object.entries(options).map(([key, value]) => {
      if (/^(?:l|flowL)imits$/.test(key)) return [key, this.parts(Object(value))];
      if (key === 'bands') return [key, value?.map((band: object) => this.withParts(band))];
      return [key, value && /^default.*Band$/.test(key) ? this.withParts(value) : value];
    });
    return Object.fromEntries(less);
  }

  /** The parts are no more than the whole together, unless it is less than one for each. */
  private parts(whole: object): Record<string, number> {
    const part = (each: number): number => Math.max(Math.min(1, each), Math.floor(each / this.place.count));
    const parts = Object.entries(whole).map(([key, each]) => [key, Number.isFinite(each) ? part(each) : each]);
    return Object.fromEntries(parts);
  }

  /** A detector whose limits are those of all workers together. */
  private leased(own: SaturationDetector, limits: ConcurrencyLimits): SaturationDetector {
    const { concurrencyMode: mode = 'requests', maxConcurrency = 100, maxTokenConcurrency: maxTokens = 1e6 } = limits;
    const units = { ...(mode !== 'tokens' && { maxConcurrency }), ...(mode !== 'requests' && { maxTokens }) };
    const leases = Object.entries(units).map(([unit, limit]) => {
      const pool = `${name}-${this.limits.size}-${unit}`;
      const options = { pool, replica: this.replica, ...timing, [unit]: limit };
      const lease = this.leases.get(pool) ?? redis.sharedEndpointConcurrency(this.place.store, options);
      this.leases.set(pool, lease);
      this.limits.set(pool, limit);
      return lease;
    });
    return maxOf(...leases, own);
  }

  private exchanged(policy: FlowFairnessPolicy): FlowFairnessPolicy {
    const options = { name: `${name}-${this.read.length}`, interval: exchangeMs, callTimeout: timing.callTimeout };
    const shared = redis.sharedFairness(this.place.store, policy, options);
    this.read.push(shared);
    return shared;
  }
}
