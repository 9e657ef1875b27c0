/** Metrics of the part of shared limits that a replica holds, in a registry of prom-client. */
import type { LeaseFigures, StoreFigures } from '../../base/lease-figures.js';
import type { Observation } from '../metrics/labelled-flows.js';
import { expose, type Family, familiesOf, type MetricsRegister } from './scraped-metric.js';

/** One lease, as `status` of the detectors of `headgate/redis` tells it. */
export interface ObservedLease extends LeaseFigures {
  /** The fair part, by the last answer. */
  readonly target: number;
  readonly store: StoreFigures;
}

/** Metrics of quotas that replicas share: `sharedQuotas()` of `headgate/redis`. */
export interface ObservedQuotas {
  readonly name: string;
  readonly status: readonly ObservedQuota[];
  readonly store: StoreFigures;
}

export interface ObservedQuota {
  readonly key: string;
  readonly balance: number;
  readonly used: number;
  readonly limit: number;
  readonly isLocal: boolean;
}

type Leases = () => readonly ObservedLease[];

const gauge = familiesOf('shared_', ['pool', 'endpoint'], (leases: Leases) =>
  leases().map((lease) => [{ pool: lease.pool, endpoint: lease.endpoint ?? '' }, lease] as const),
);

/** Counted for all leases of a pool together. */
const perPool = familiesOf('shared_', ['pool'], function* firstOfPool(leases: Leases) {
  const told = new Set<string>();
  for (const lease of leases()) {
    if (!told.has(lease.pool)) yield [{ pool: lease.pool }, lease] as const;
    told.add(lease.pool);
  }
});

/** Of the processes of one machine the highest counts: they tell the same, or a state. */
const ofAll = <S>(family: Family<S>): Family<S> =>
  /limit|held|replicas|used|age|expired|latency|open|local|shared_engine/.test(family.name)
    ? { ...family, aggregator: 'max' }
    : family;

const families: readonly Family<Leases>[] = [
  gauge('limit', 'The limit of all replicas together.', ({ limit }) => limit),
  gauge('cap', 'What this replica may have in flight now.', ({ cap }) => cap),
  gauge('granted', 'What this replica was granted last.', ({ granted }) => granted),
  gauge('target', 'The fair part of this replica.', ({ target }) => target),
  gauge('safe_share', 'What this replica falls back to without the store.', ({ safeShare }) => safeShare),
  gauge('held', 'What all replicas hold together.', ({ held }) => held),
  gauge('in_flight', 'What this replica has in flight.', ({ inFlight }) => inFlight),
  gauge('replicas', 'Replicas that share the limit.', ({ replicas }) => replicas),
  gauge('lease_age_seconds', 'Time since the call whose answer is in force.', ({ leaseAgeMs }) =>
    leaseAgeMs < Infinity ? leaseAgeMs / 1_000 : undefined,
  ),
  gauge('lease_expired', '1 while the fallback is in force.', ({ isExpired }) => Number(isExpired)),
  gauge('over_admission', 'In flight above the safe share while the lease is over.', (lease) => lease.overAdmission),
  perPool('engine_latency_seconds', 'Time of the last call of the store.', ({ store: { latencyMs } }) =>
    latencyMs === undefined ? undefined : latencyMs / 1_000,
  ),
  perPool('engine_breaker_open', '1 while calls are held back.', ({ store }) => Number(store.isBreakerOpen)),
  perPool('engine_calls_total', 'Calls of the store.', ({ store }) => store.calls),
  perPool('engine_misses_total', 'Calls of the store that did not do their work.', ({ store }) => store.misses),
  perPool('engine_epoch_changes_total', 'Times that the store had lost what it knew.', (lease) => lease.epochChanges),
].map(ofAll);

type Quotas = () => ObservedQuotas;

const ofQuota = familiesOf('shared_quota_', ['name', 'quota'], (quotas: Quotas) => {
  const { name, status } = quotas();
  return status.map((quota) => [{ name, quota: quota.key }, quota] as const);
});

const ofQuotaStore = familiesOf('shared_quota_engine_', ['name'], (quotas: Quotas) => {
  const { name, store } = quotas();
  return [[{ name }, store]] as const;
});

const quotaFamilies: readonly Family<Quotas>[] = [
  ofQuota('limit', 'Units in its span, of all replicas together.', ({ limit }) => limit),
  ofQuota('used', 'Units that all replicas have used, as far as this one knows.', ({ used }) => used),
  ofQuota('balance', 'Units that this replica has bought ahead and not used.', ({ balance }) => balance),
  ofQuota('local', '1 while this replica uses its own part, because the store is away.', (of) => Number(of.isLocal)),
  ofQuotaStore('breaker_open', '1 while calls are held back.', ({ isBreakerOpen }) => Number(isBreakerOpen)),
  ofQuotaStore('calls_total', 'Calls of the store.', ({ calls }) => calls),
  ofQuotaStore('misses_total', 'Calls of the store that did not do their work.', ({ misses }) => misses),
].map(ofAll);

export interface SharedStateMetricsOptions {
  /** Where the metrics are registered: a `Registry` of prom-client. */
  readonly register: MetricsRegister;
  /** Before every name. @default 'headgate_' */
  readonly prefix?: string | undefined;
  /** Tells sources apart that share a registry. @default '' */
  readonly source?: string | undefined;
}

/**
 * Registers what a replica holds of shared limits: share, lease age, over-admission, and the state of the store. Read
 * when somebody scrapes; requests cost nothing. @throws FlowConfigError when the registry has them already
 * @example sharedStateMetrics(() => shared.status, { register });
 */
export function sharedStateMetrics(leases: Leases, options: SharedStateMetricsOptions): Observation {
  const { register, prefix = 'headgate_', source = '' } = options;
  return { stop: expose<Leases>(register, prefix, families, source, leases) };
}

/**
 * Registers what a replica has of quotas that it shares: what all have used, what it has bought ahead, and the state of
 * the store. @throws FlowConfigError when the registry has them already
 * @example sharedQuotaMetrics(() => quotas, { register });
 */
export function sharedQuotaMetrics(quotas: Quotas, options: SharedStateMetricsOptions): Observation {
  const { register, prefix = 'headgate_', source = '' } = options;
  return { stop: expose<Quotas>(register, prefix, quotaFamilies, source, quotas) };
}
