/**
 * The limit and the quotas that this gateway shares with its replicas: connection, detector, and lines of the log.
 *
 * Invariant: a gateway starts and serves without the store; the fallback of the leases is in force then.
 */
import { type Constraint, maxOf, type SaturationDetector } from '../../index.js';
import {
  type LeasedDetector,
  type LeaseOptions,
  type SharedConcurrency,
  type SharedQuotas,
  type Store,
  type StoreProblem,
  sharedConcurrency,
  sharedEndpointConcurrency,
  sharedQuotas,
} from '../../redis/index.js';
import type { QuotaDetector } from '../../types/index.js';
import type { GatewayLog } from './gateway-log.js';
import type { StoreAddress } from './store-clients.js';
import { StoreConnection } from './store-connection.js';

export interface SharedStateConfig {
  readonly store: StoreAddress;
  /** Reads `store` again, whose secrets may have changed; undefined while it cannot be read. */
  readonly readStore: () => StoreAddress | undefined;
  /** In flight: requests or tokens of the pool, or requests of each endpoint of weight 1; undefined: only quotas. */
  readonly limits: 'maxConcurrency' | 'maxTokens' | 'endpointConcurrency' | undefined;
  readonly limit: number;
  /** Whether the quotas of the file's `quota-detector` are those of all replicas. */
  readonly quotas: boolean;
  readonly leases: LeaseOptions & { readonly leaseDuration: number };
}

export type Connection = Pick<StoreConnection, 'store' | 'follow' | 'end'>;

export class SharedState {
  /** Undefined where no limit is shared. */
  readonly detector: LeasedDetector | undefined;
  /** Undefined where quotas are those of each replica. */
  readonly quotas: SharedQuotas | undefined;
  private config: SharedStateConfig;
  private readonly connection: Connection;

  private constructor(config: SharedStateConfig, connection: Connection, log: GatewayLog) {
    this.config = config;
    this.connection = connection;
    const { store } = connection;
    this.detector = detectorOf(config, store);
    if (this.detector !== undefined) logLeases(this.detector, log);
    this.quotas = config.quotas ? quotasOf(config, store, this.detector) : undefined;
    this.quotas?.onProblem(({ code, message }) => log('warn', 'shared-state', { code, message }));
  }

  /** `given`: that of the primary of workers. @throws (rejects) FlowConfigError when no client is installed */
  static async connect(config: SharedStateConfig, log: GatewayLog, given?: Connection): Promise<SharedState> {
    const { store, leases } = config;
    const again = (): StoreAddress | undefined => shared.config.readStore();
    const connection = given ?? (await StoreConnection.open(store, again, leases.leaseDuration));
    const shared = new SharedState(config, connection, log);
    return shared;
  }

  /** The file's detector and the shared limit: the fuller of the two decides. */
  beside<D extends SaturationDetector | ((...args: never) => unknown)>(detector: D): SaturationDetector {
    const own = (
      typeof detector === 'function' ? { type: 'function', saturation: detector } : detector
    ) as SaturationDetector;
    return this.detector === undefined ? own : maxOf({ detector: this.detector, name: 'shared' }, own);
  }

  /** Whether there is a limit, and no part of it here; and the problem of the store, if it has one. */
  get share(): { readonly isMissing: boolean; readonly problem: StoreProblem | undefined } {
    const leases = this.detector?.status ?? [];
    const isMissing = this.detector !== undefined && leases.every(({ cap }) => cap === 0);
    return { isMissing, problem: leases[0]?.store.problem ?? this.quotas?.store.problem };
  }

  /** Puts another limit or store into force. False when other settings have changed too, which needs a restart. */
  reconfigure(next: SharedStateConfig | undefined): boolean {
    if (next === undefined) return false;
    const { limit: _limit, store: _store, ...before } = this.config;
    const { limit, store, ...after } = next;
    if (JSON.stringify(before) !== JSON.stringify(after)) return false;
    const { detector } = this;
    const isSettable = detector !== undefined && canBeSet(detector);
    if (limit !== this.config.limit && !isSettable) return false;
    if (isSettable) detector.setLimit(limit);
    this.config = next;
    this.connection.follow(store);
    return true;
  }

  /** Gives the share back and closes the connection. Never rejects. */
  async close(): Promise<void> {
    await Promise.all([this.detector?.close(), this.quotas?.close()]);
    this.connection.end();
  }
}

/** From now on `constraints` use `quotas` of all replicas or workers; they replace `before` in this turn. */
export function shareQuotas(
  quotas: SharedQuotas | undefined,
  constraints: readonly Constraint[],
  before: readonly Constraint[] = [],
): void {
  if (quotas === undefined) return;
  for (const constraint of before) if (hasQuotas(constraint)) constraint.end();
  for (const constraint of constraints) if (hasQuotas(constraint)) constraint.drawFrom(quotas);
}

function canBeSet(detector: LeasedDetector): detector is SharedConcurrency {
  return 'setLimit' in detector;
}

function hasQuotas(constraint: Constraint): constraint is QuotaDetector {
  return 'drawFrom' in constraint;
}

function quotasOf({ leases }: SharedStateConfig, store: Store, detector: LeasedDetector | undefined): SharedQuotas {
  const { pool: name, prefix, replicas: expected = 2, refreshInterval, callTimeout, fallback } = leases;
  let seen = 0;
  detector?.on('granted', ({ answer }) => {
    seen = answer.replicas;
  });
  const replicas = (): number => Math.max(expected, seen);
  return sharedQuotas(store, {
    name,
    prefix,
    replicas,
    refreshInterval,
    callTimeout,
    fallback: fallback === 'closed' ? 'closed' : 'share',
  });
}

function detectorOf({ limits, limit, leases }: SharedStateConfig, store: Store): LeasedDetector | undefined {
  if (limits === undefined) return undefined;
  if (limits === 'endpointConcurrency') return sharedEndpointConcurrency(store, { ...leases, maxConcurrency: limit });
  return sharedConcurrency(store, { ...leases, [limits]: limit });
}

function logLeases(detector: LeasedDetector, log: GatewayLog): void {
  detector.on('problem', ({ code, message }) => log('warn', 'shared-state', { code, message }));
  detector.on('expired', ({ key, limit }) => log('warn', 'lease-expired', { key, limit }));
  detector.on('recovered', ({ key, grant, expiredForMs }) =>
    log('info', 'lease-recovered', { key, grant, expiredForMs: Math.round(expiredForMs) }),
  );
  detector.on('epoch', ({ key, epoch }) => log('warn', 'shared-state-lost', { key, epoch }));
  detector.on('breaker', ({ isOpen }) => log(isOpen ? 'warn' : 'info', 'shared-state-breaker', { isOpen }));
}
