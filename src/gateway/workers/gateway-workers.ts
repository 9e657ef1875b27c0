/**
 * What the workers of one machine share of a gateway file, through the store that their primary serves: a limit of the
 * file is one limit, and not one for each worker.
 *
 *     seats of a concurrency-detector, quotas, sessions, marks, fairness by cost     shared
 *     what may wait, rates of admission, connections                                each worker has its part
 *     all else                                                                      each worker by itself
 *
 * Invariant: a file that is read and not used takes part in nothing: its part begins with `start`. Leases stay with the
 * worker when the file changes, because a new replica of a limit would count what runs here once more.
 */
import type { EventEmitter } from 'node:events';
import { env } from 'node:process';
import {
  type Constraint,
  type concurrencyDetector,
  type EndpointPool,
  type FlowFairnessPolicy,
  maxOf,
  type PluginRegistry,
  type SaturationDetector,
} from '../../index.js';
import {
  type LeaseStatus,
  type SharedEndpoints,
  type SharedMarks,
  type SharedQuotas,
  type Store,
  type StoreMessages,
  sharedEndpointConcurrency,
  sharedFairness,
  sharedMarks,
  sharedQuotas,
  sharedSessions,
  type WaitingFlow,
} from '../../redis/index.js';
import type { SessionLimit } from '../../types/index.js';
import type { GatewayConfig } from '../settings/gateway-config.js';
import type { Connection } from '../shared/shared-state.js';

/**
 * A message within a machine takes microseconds; an answer is late only where a process is busy. What runs in a worker
 * is counted as long as it lives, however silent it is: its end is known.
 */
const timing = { refreshInterval: 100, leaseDuration: 5_000, callTimeout: 1_000, drainDuration: 7 * 86_400_000 };
const exchangeMs = 250;
const name = 'workers';

/** Policies that keep an account of what flows receive. */
const byCost = /^(?:virtual-token-counter|start-time-fair-queueing|least-service|deficit-round-robin)-fairness-policy$/;

type ConcurrencyLimits = NonNullable<Parameters<typeof concurrencyDetector>[0]>;

/** What a worker asks, with its own answer, and is asked; it tells `ready`, and is told a `signal` of the primary. */
export interface WorkerQuestion {
  readonly what: 'metrics' | 'demand' | 'thresholds' | 'ready' | 'signal';
  readonly given: unknown;
}

/** What one file shares. */
interface Part {
  /** By the names of the leases. */
  readonly leases: Map<string, { readonly detector: SharedEndpoints; readonly limit: number }>;
  readonly others: { close(): unknown }[];
}

const nothing = (): Part => ({ leases: new Map(), others: [] });

interface WorkerPlace {
  /** Its number, from 1 up, and how many there are: each has this part of what is divided. */
  readonly worker: number;
  readonly count: number;
  /** What the primary serves: its own store, and that of `sharedState`. */
  readonly store: Store & { readonly messages: StoreMessages };
  readonly connection: Connection;
  /** Those that the primary got; it emits `serving` when the gateway is ready for them. */
  readonly signals: EventEmitter;
  /** The answer of all workers, of which this one's is given. */
  readonly together: (question: WorkerQuestion) => Promise<unknown>;
}

/** One worker of a gateway, as long as it lives. */
export class GatewayWorkers {
  readonly place: WorkerPlace;
  readonly quotas: SharedQuotas;
  /** What this worker alone answers. */
  answer: (question: WorkerQuestion) => unknown = () => undefined;
  private readonly replica = globalThis.crypto.randomUUID();
  private marks: SharedMarks | undefined = undefined;
  private inForce = nothing();
  /** Of the file that was read last, until it is in force. */
  private read = nothing();

  constructor(place: WorkerPlace) {
    const { store, count } = place;
    this.place = place;
    this.quotas = sharedQuotas(store, { name, replicas: () => count, callTimeout: timing.callTimeout });
  }

  /** A registry that makes the plugins of one file, which share. */
  registry(registry: PluginRegistry): PluginRegistry {
    void this.end(this.read);
    this.read = nothing();
    const sharing: PluginRegistry = Object.create(registry);
    sharing.create = (type, parameters, references = sharing) => {
      const plugin = registry.create(type, this.partOf(type, parameters), references);
      if (type === 'concurrency-detector' && 'saturation' in plugin) return this.leased(plugin, Object(parameters));
      return byCost.test(type) && 'createSelector' in plugin ? this.exchanged(plugin) : plugin;
    };
    return sharing;
  }

  /** The settings of the file, with the parts of this worker, which is a replica of its own. */
  settings(config: GatewayConfig): GatewayConfig {
    const { limits, flow, sharedState } = config;
    const { worker, count } = this.place;
    const { replica = env.HEADGATE_REPLICA, replicas } = sharedState?.leases ?? {};
    const own = { replica: replica && `${replica}.${worker}`, replicas: replicas && replicas * count };
    return {
      ...config,
      flow: this.withParts(flow),
      limits: { ...limits, ...this.parts({ maxConnections: limits.maxConnections }) },
      sharedState: sharedState && { ...sharedState, leases: { ...sharedState.leases, ...own } },
    };
  }

  /** From now on `flow` goes by the file that was read last. */
  start(flow: WaitingFlow, pool: EndpointPool, constraints: readonly Constraint[]): void {
    this.marks ??= sharedMarks(this.place.store, pool, { name });
    const before = this.inForce;
    this.inForce = this.read;
    this.read = nothing();
    for (const { detector, limit } of this.inForce.leases.values()) {
      detector.setLimit(limit);
      detector.attach(flow);
    }
    void this.end(before);
    for (const [index, limit] of constraints.filter(isSessionLimit).entries())
      this.inForce.others.push(sharedSessions(this.place.store, limit, { name: `${name}-${index}` }));
  }

  get status(): readonly LeaseStatus[] {
    return [...this.inForce.leases.values()].flatMap(({ detector }) => detector.status);
  }

  /** Gives everything back. Never rejects. */
  async close(): Promise<void> {
    const last = this.inForce;
    this.inForce = nothing();
    await Promise.all([this.end(last), this.end(this.read), this.quotas.close(), this.marks?.close()]);
  }

  /** Ends what the file in force does not go on with. */
  private end({ leases, others }: Part): Promise<unknown> {
    const over = [...leases].filter(([key]) => !this.inForce.leases.has(key)).map(([, { detector }]) => detector);
    return Promise.all([...over, ...others].map((each) => each.close()));
  }

  private partOf(type: string, parameters: unknown): unknown {
    const { refillPerSecond = 1_000, capacity, ...others } = Object(parameters);
    // The burst stays whole, because a larger request would never pass.
    if (type === 'token-bucket') return { ...Object(parameters), refillPerSecond: refillPerSecond / this.place.count };
    return type === 'tenant-budgets' ? { ...others, ...this.parts({ capacity }) } : parameters;
  }

  /** With a part of all limits on what may wait. */
  private withParts<O extends object>(options: O): O {
    const less = Object.entries(options).map(([key, value]) => {
      if (/^(?:l|flowL)imits$/.test(key)) return [key, this.parts(Object(value))];
      if (key === 'bands') return [key, value?.map((band: object) => this.withParts(band))];
      return [key, value && /^default.*Band$/.test(key) ? this.withParts(value) : value];
    });
    return Object.fromEntries(less) as O;
  }

  /** The parts are no more than the whole together, unless it is less than one for each. */
  private parts<L extends object>(whole: L): L {
    const part = (each: unknown): unknown =>
      Number.isFinite(each) ? Math.max(Math.min(1, Number(each)), Math.floor(Number(each) / this.place.count)) : each;
    return Object.fromEntries(Object.entries(whole).map(([key, each]) => [key, part(each)])) as L;
  }

  /** A detector whose limits are those of all workers together. */
  private leased(own: SaturationDetector, limits: ConcurrencyLimits): SaturationDetector {
    const { concurrencyMode = 'requests', maxConcurrency = 100, maxTokenConcurrency: maxTokens = 1_000_000 } = limits;
    const [requests, tokens] = [{ maxConcurrency }, { maxTokens }];
    const units = Object.entries({ requests, tokens, hybrid: { ...requests, ...tokens } }[concurrencyMode]);
    return maxOf(...units.map(([unit, limit]) => this.lease(unit, limit)), own);
  }

  private lease(unit: string, limit: number): SharedEndpoints {
    const { leases } = this.read;
    const pool = `${name}-${leases.size}-${unit}`;
    const options = { pool, replica: this.replica, ...timing, [unit]: limit };
    const detector = this.inForce.leases.get(pool)?.detector ?? sharedEndpointConcurrency(this.place.store, options);
    leases.set(pool, { detector, limit });
    return detector;
  }

  private exchanged(policy: FlowFairnessPolicy): FlowFairnessPolicy {
    const { others } = this.read;
    const options = { name: `${name}-${others.length}`, interval: exchangeMs, callTimeout: timing.callTimeout };
    const shared = sharedFairness(this.place.store, policy, options);
    others.push(shared);
    return shared;
  }
}

function isSessionLimit(constraint: object): constraint is SessionLimit {
  return 'share' in constraint;
}
