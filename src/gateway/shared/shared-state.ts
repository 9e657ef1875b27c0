/**
 * The limit and the quotas that this gateway shares: with its replicas, and with the other workers of its machine.
 *
 * Invariant: a gateway starts and serves without the store; the fallback of the leases is in force then.
 */
import { type Constraint, maxOf, type SaturationDetector } from '../../index.js';
import {
  type LeasedDetector,
  type LeaseStatus,
  type SharedQuotas,
  type Store,
  type StoreProblem,
  sharedConcurrency,
  sharedEndpointConcurrency,
  sharedQuotas,
} from '../../redis/index.js';
import type { QuotaDetector } from '../../types/index.js';
import type { GatewayLog } from './gateway-log.js';
import type { GatewayWorkers } from './gateway-workers.js';
import type { StoreAddress } from './store-clients.js';
import { type Connection, type SharedStateConfig, StoreConnection } from './store-connection.js';

export class SharedState {
  /** Undefined where replicas share no limit. */
  readonly detector: LeasedDetector | undefined;
  /** Undefined where quotas are those of each replica. */
  readonly quotas: SharedQuotas | undefined;
  readonly workers: GatewayWorkers | undefined;
  private config: SharedStateConfig | undefined;
  private readonly connection: Connection | undefined;

  private constructor(
    config: SharedStateConfig | undefined,
    connection: Connection | undefined,
    log: GatewayLog,
    workers: GatewayWorkers | undefined,
  ) {
    this.config = config;
    this.connection = connection;
    this.workers = workers;
    this.detector = config && connection && detectorOf(config, connection.store, workers);
    // The primary of workers tells of the lease that is theirs together.
    if (this.detector !== undefined && workers === undefined) logLeases(this.detector, log);
    const ofReplicas = config?.quotas && connection && quotasOf(config, connection.store, this.detector);
    this.quotas = ofReplicas || workers?.quotas;
    this.quotas?.onProblem(({ code, message }) => log('warn', 'shared-state', { code, message }));
  }

  /** Undefined where nothing is shared. @throws (rejects) FlowConfigError when no client is installed */
  static async connect(
    config: SharedStateConfig | undefined,
    log: GatewayLog,
    workers?: GatewayWorkers,
  ): Promise<SharedState | undefined> {
    if (config === undefined) return workers && new SharedState(undefined, undefined, log, workers);
    const again = (): StoreAddress | undefined => shared.config?.readStore();
    const { leaseDuration } = config.leases;
    const connection = workers?.place.connection ?? (await StoreConnection.open(config.store, again, leaseDuration));
    const shared = new SharedState(config, connection, log, workers);
    return shared;
  }

  /** The file's detector and the shared limit: the fuller of the two decides. */
  beside<D extends SaturationDetector | ((...args: never) => unknown)>(detector: D): SaturationDetector {
    const own = (
      typeof detector === 'function' ? { type: 'function', saturation: detector } : detector
    ) as SaturationDetector;
    return this.detector === undefined ? own : maxOf({ detector: this.detector, name: 'shared' }, own);
  }

  /** From now on `constraints` use the quotas of all replicas; they replace `before` in this turn. */
  shareQuotas(constraints: readonly Constraint[], before: readonly Constraint[] = []): void {
    if (this.quotas === undefined) return;
    for (const constraint of before) if (hasQuotas(constraint)) constraint.end();
    for (const constraint of constraints) if (hasQuotas(constraint)) constraint.drawFrom(this.quotas);
  }

  /** The holdings of this replica, for pages. */
  get held(): { readonly leases: readonly LeaseStatus[]; readonly quotas: SharedQuotas | undefined } {
    const { detector, quotas, workers } = this;
    const leases = [...(detector?.status ?? []), ...(workers?.status ?? [])];
    return { leases, quotas: quotas?.status.length ? quotas : undefined };
  }

  /** Whether there is a limit, and no part of it here; and the problem of the store, if it has one. */
  get share(): { readonly isMissing: boolean; readonly problem: StoreProblem | undefined } {
    const leases = this.detector?.status ?? [];
    const isMissing = this.detector !== undefined && leases.every(({ cap }) => cap === 0);
    return { isMissing, problem: leases[0]?.store.problem ?? this.quotas?.store.problem };
  }

  /** Puts another limit or store into force. False when other settings have changed too, which needs a restart. */
  reconfigure(next: SharedStateConfig | undefined): boolean {
    if (next === undefined || this.config === undefined) return next === this.config;
    const { limit: _limit, store: _store, ...before } = this.config;
    const { limit, store, ...after } = next;
    if (JSON.stringify(before) !== JSON.stringify(after)) return false;
    const { detector } = this;
    if (limit !== this.config.limit && detector === undefined) return false;
    detector?.setLimit(limit);
    this.config = next;
    this.connection?.follow(store);
    return true;
  }

  /** Gives the share back and closes the connection. Never rejects. */
  async close(): Promise<void> {
    await Promise.all([this.detector?.close(), this.quotas?.close(), this.workers?.close()]);
    this.connection?.end();
  }
}

function hasQuotas(constraint: Constraint): constraint is QuotaDetector {
  return 'drawFrom' in constraint;
}

function quotasOf({ leases }: SharedStateConfig, store: Store, detector: LeasedDetector | undefined): SharedQuotas {
  const { pool: name, prefix, replicas: expected = 2, refreshInterval, callTimeout } = leases;
  const fallback = leases.fallback === 'closed' ? 'closed' : 'share';
  let replicas = expected;
  detector?.on('granted', ({ answer }) => {
    replicas = Math.max(expected, answer.replicas);
  });
  const options = { name, prefix, refreshInterval, callTimeout, fallback } as const;
  return sharedQuotas(store, { ...options, replicas: () => replicas });
}

function detectorOf({ limits, limit, leases: given }: SharedStateConfig, store: Store, workers?: GatewayWorkers) {
  const leases = { ...given, ...workers?.timing(given) };
  if (limits === undefined) return undefined;
  if (limits === 'endpointConcurrency') return sharedEndpointConcurrency(store, { ...leases, maxConcurrency: limit });
  return sharedConcurrency(store, { ...leases, [limits]: limit });
}

export function logLeases(detector: Pick<LeasedDetector, 'on'>, log: GatewayLog): void {
  detector.on('problem', ({ code, message }) => log('warn', 'shared-state', { code, message }));
  detector.on('expired', ({ key, limit }) => log('warn', 'lease-expired', { key, limit }));
  detector.on('recovered', ({ key, grant, expiredForMs }) =>
    log('info', 'lease-recovered', { key, grant, expiredForMs: Math.round(expiredForMs) }),
  );
  detector.on('epoch', ({ key, epoch }) => log('warn', 'shared-state-lost', { key, epoch }));
  detector.on('breaker', ({ isOpen }) => log(isOpen ? 'warn' : 'info', 'shared-state-breaker', { isOpen }));
}
