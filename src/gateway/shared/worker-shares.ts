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
import {
  type concurrencyDetector,
  type EndpointPool,
  type FlowControllerOptions,
  type FlowFairnessPolicy,
  maxOf,
  type PluginRegistry,
  type SaturationDetector,
} from '../../index.js';
import {
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

/** A message within a machine takes microseconds; an answer is late only where a process is busy. */
const timing = { refreshInterval: 100, leaseDuration: 5_000, callTimeout: 1_000 };
const exchangeMs = 250;
const name = 'workers';

/** Policies that keep an account of what flows receive. */
export const byCost: ReadonlySet<string> = new Set(
  ['virtual-token-counter', 'start-time-fair-queueing', 'least-service', 'deficit-round-robin'].map(
    (each) => `${each}-fairness-policy`,
  ),
);
/** Parameters of which each worker has its part, with the defaults of those that may be left out. */
const divided: Readonly<Record<string, Readonly<Record<string, number | undefined>>>> = {
  'token-bucket': { capacity: 10_000, refillPerSecond: 1_000 },
  'tenant-budgets': { capacity: undefined },
};

type Plugin = ReturnType<PluginRegistry['create']>;
type ConcurrencyLimits = NonNullable<Parameters<typeof concurrencyDetector>[0]>;

type SharedStore = Store & { readonly messages: StoreMessages };

interface Leased {
  readonly detector: SharedEndpoints;
  readonly limit: number;
}

/** One worker of a gateway, as long as it lives: `loadGatewayConfig(file, { workers })`. */
export class GatewayWorkers {
  readonly store: SharedStore;
  readonly count: number;
  readonly leases: Map<string, SharedEndpoints> = new Map();
  private drawn: SharedQuotas | undefined = undefined;
  private marks: SharedMarks | undefined = undefined;

  /**
   * `store` reaches all workers: `workerStore(process)` in each. `count`: how many there are; each has this part of
   * what is divided.
   */
  constructor(store: SharedStore, count: number) {
    this.store = store;
    this.count = count;
  }

  /** Made on first use: a file may have none. */
  get quotas(): SharedQuotas {
    const { callTimeout } = timing;
    this.drawn ??= sharedQuotas(this.store, { name, replicas: () => this.count, callTimeout });
    return this.drawn;
  }

  /** Marks of servers that refuse are those of all workers from now on. */
  shareMarks(pool: EndpointPool): void {
    this.marks = sharedMarks(this.store, pool, { name });
  }

  /** Gives everything back. Never rejects. */
  async close(): Promise<void> {
    await Promise.all([...this.leases.values(), this.drawn, this.marks].map((each) => each?.close()));
  }
}

/** What one file shares. */
export class FileShares {
  readonly workers: GatewayWorkers;
  /** By the names of the leases. */
  private readonly leased = new Map<string, Leased>();
  private readonly limits: SessionLimit[] = [];
  private readonly closables: { close(): unknown }[] = [];
  private readonly drainDuration: number;
  private flow: WaitingFlow | undefined = undefined;

  /** `longestMs`: the longest that a request may take. */
  constructor(workers: GatewayWorkers, longestMs: number) {
    this.workers = workers;
    this.drainDuration = longestMs;
  }

  /** The parameters of a plugin for one worker. */
  partOf(type: string, parameters: unknown): unknown {
    const shares = Object.entries(divided[type] ?? {}).map(([key, standard]) => {
      const whole: unknown = Object(parameters)[key] ?? standard;
      return [key, typeof whole === 'number' ? part(whole, this.workers.count) : whole];
    });
    return shares.length === 0 ? parameters : { ...Object(parameters), ...Object.fromEntries(shares) };
  }

  /** A plugin in the form that shares; itself where it has nothing to share. */
  shared(type: string, parameters: unknown, plugin: Plugin): Plugin {
    if (type === 'concurrency-detector' && 'saturation' in plugin) return this.beside(plugin, Object(parameters));
    if (byCost.has(type) && 'createSelector' in plugin) return this.exchanged(plugin);
    if (isSessionLimit(plugin)) this.limits.push(plugin);
    return plugin;
  }

  /** A detector whose limits are those of all workers together. */
  beside(own: SaturationDetector, limits: ConcurrencyLimits): SaturationDetector {
    const { concurrencyMode = 'requests', maxConcurrency = 100, maxTokenConcurrency = 1_000_000 } = limits;
    const leased = [
      ...(concurrencyMode === 'tokens' ? [] : [this.lease('maxConcurrency', maxConcurrency)]),
      ...(concurrencyMode === 'requests' ? [] : [this.lease('maxTokens', maxTokenConcurrency)]),
    ];
    return maxOf(...leased, own);
  }

  /** The limits on what waits, for one worker. */
  withParts(flow: FlowControllerOptions): FlowControllerOptions {
    type Limits = FlowControllerOptions['limits'];
    type Band = NonNullable<FlowControllerOptions['defaultBand']>;
    const less = (limits: Limits): Limits =>
      limits &&
      Object.fromEntries(Object.entries(limits).map(([key, value]) => [key, part(Number(value), this.workers.count)]));
    const template = <B extends Band>(band: B): B => ({
      ...band,
      limits: less(band.limits),
      flowLimits: less(band.flowLimits),
    });
    const { limits, bands, defaultBand, defaultNegativeBand } = flow;
    return {
      ...flow,
      limits: less(limits),
      bands: bands?.map(template),
      defaultBand: defaultBand && template(defaultBand),
      defaultNegativeBand: defaultNegativeBand && template(defaultNegativeBand),
    };
  }

  /** From now on `flow` goes by this file, which replaces `before`. */
  start(flow: WaitingFlow, before?: FileShares | undefined): void {
    const { leases, store } = this.workers;
    this.flow = flow;
    for (const [key, leased] of this.leased) this.hold(key, leased);
    for (const [key, detector] of leases) {
      if (this.leased.has(key)) continue;
      leases.delete(key);
      void detector.close();
    }
    for (const [index, limit] of this.limits.entries())
      this.closables.push(sharedSessions(store, limit, { name: `${name}-${index}` }));
    before?.end();
  }

  /** Ends what belongs to this file alone; leases and quotas stay with the worker. */
  end(): void {
    for (const each of this.closables) void each.close();
  }

  private lease(unit: 'maxConcurrency' | 'maxTokens', limit: number): SharedEndpoints {
    const { leases, store, count } = this.workers;
    const pool = `${name}-${this.leased.size}-${unit}`;
    const spans = { ...timing, drainDuration: this.drainDuration, forgetAfter: this.drainDuration };
    const detector =
      leases.get(pool) ?? sharedEndpointConcurrency(store, { pool, replicas: count, ...spans, [unit]: limit });
    this.leased.set(pool, { detector, limit });
    this.hold(pool, { detector, limit });
    return detector;
  }

  /** From `start` on. */
  private hold(pool: string, { detector, limit }: Leased): void {
    if (this.flow === undefined) return;
    this.workers.leases.set(pool, detector);
    detector.setLimit(limit);
    detector.attach(this.flow);
  }

  private exchanged(policy: FlowFairnessPolicy): FlowFairnessPolicy {
    const shared = sharedFairness(this.workers.store, policy, {
      name: `${name}-${this.closables.length}`,
      interval: exchangeMs,
      callTimeout: timing.callTimeout,
    });
    this.closables.push(shared);
    return shared;
  }
}

/** The parts are no more than the whole together, unless it is less than one for each. */
export function part(whole: number, count: number): number {
  return whole > 0 && whole < Number.POSITIVE_INFINITY ? Math.max(1, Math.floor(whole / count)) : whole;
}

function isSessionLimit(plugin: object): plugin is SessionLimit {
  return 'share' in plugin;
}
