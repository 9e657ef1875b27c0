/**
 * Every instrument and attribute, by name. Source: OpenTelemetry semantic conventions 1.44, general naming.
 * docs/metrics.md is held against it.
 */
import type { MetricOptions } from '@opentelemetry/api';
import { queueDurationBuckets } from '../metrics/duration-buckets.js';

export interface Instrument extends MetricOptions {
  readonly name: string;
  readonly description: string;
  readonly unit: string;
}

export const queueDuration: Instrument = {
  name: 'flow_control.queue.duration',
  description: 'Time requests spend in the flow control layer.',
  unit: 's',
  advice: { explicitBucketBoundaries: [...queueDurationBuckets] },
};

export const requests: Instrument = {
  name: 'flow_control.requests',
  description: 'Requests by what became of them.',
  unit: '{request}',
};

export const queueSize: Instrument = {
  name: 'flow_control.queue.size',
  description: 'Requests that wait in flow control.',
  unit: '{request}',
};

export const queuePayload: Instrument = {
  name: 'flow_control.queue.payload',
  description: 'Bytes of the requests that wait in flow control.',
  unit: 'By',
};

export const inFlight: Instrument = {
  name: 'flow_control.in_flight',
  description: 'Leases not yet released.',
  unit: '{request}',
};

export const oldestLease: Instrument = {
  name: 'flow_control.lease.oldest_age',
  description: 'How long the oldest unreleased lease is held; 0 while nothing runs.',
  unit: 's',
};

export const overdueLeases: Instrument = {
  name: 'flow_control.lease.overdue',
  description: 'Leases that were held longer than maxLeaseMs.',
  unit: '{lease}',
};

export const saturation: Instrument = {
  name: 'flow_control.saturation',
  description: 'Saturation of the pool when it was last read; 1 is full.',
  unit: '1',
};

export const capacityUtilization: Instrument = {
  name: 'flow_control.capacity.utilization',
  description: 'What waits in a band as a share of its limit; absent without a limit.',
  unit: '1',
};

export const globalCapacityUtilization: Instrument = {
  name: 'flow_control.global_capacity.utilization',
  description: 'What waits as a share of the global limit; absent without a limit.',
  unit: '1',
};

export const fairnessIndex: Instrument = {
  name: 'flow_control.fairness.index',
  description: 'The least fairness index of the policies that keep one; 1 is fair. Absent when none does.',
  unit: '1',
};

export const serviceCost: Instrument = {
  name: 'flow_control.service.cost',
  description: 'Cost of the requests that ended, in the unit of a fairness policy that shares by cost.',
  unit: '1',
};

export const counterLag: Instrument = {
  name: 'flow_control.fairness.counter_lag',
  description:
    'Cost that a fairness ID which waits has received beyond those that go next, under policies that share by cost.',
  unit: '1',
};

export const bandFairnessIndex: Instrument = {
  name: 'flow_control.fairness.band_index',
  description:
    "Jain's index of received over owed cost of the last five minutes, under policies that share by cost; 1 is fair.",
  unit: '1',
};

export const quotaLimit: Instrument = {
  name: 'flow_control.quota.limit',
  description: 'Units that a quota of a hosted model allows in its span.',
  unit: '{unit}',
};

export const quotaUsed: Instrument = {
  name: 'flow_control.quota.used',
  description: 'Units of a quota that were settled and are not free again.',
  unit: '{unit}',
};

export const quotaReserved: Instrument = {
  name: 'flow_control.quota.reserved',
  description: 'Units of a quota that running requests hold by their estimates.',
  unit: '{unit}',
};

export const quotaReset: Instrument = {
  name: 'flow_control.quota.reset',
  description: 'Time until all of a quota is free again, if nothing more is taken.',
  unit: 's',
};

export const quotaWait: Instrument = {
  name: 'flow_control.quota.wait',
  description: 'Time until a quota has room for one unit; 0 while it has.',
  unit: 's',
};

export const quotaRefusals: Instrument = {
  name: 'flow_control.quota.refusals',
  description: 'Answers of hosted models that put a request off (429, 529).',
  unit: '{response}',
};

export const quotaUnreported: Instrument = {
  name: 'flow_control.quota.unreported',
  description:
    'Requests under a quota that ended without a report of what they consumed, so that their estimates stand.',
  unit: '{request}',
};

export const quotaIgnored: Instrument = {
  name: 'flow_control.quota.ignored',
  description: 'Figures in reports and headers that cannot be right, and that quotas ignored.',
  unit: '{figure}',
};

export const sessions: Instrument = {
  name: 'flow_control.sessions',
  description: 'Sessions that are resident, and new ones that are held back; absent where no detector limits sessions.',
  unit: '{session}',
};

export const sessionTokens: Instrument = {
  name: 'flow_control.session.tokens',
  description: 'Tokens that resident sessions hold, over all endpoints.',
  unit: '{token}',
};

export const sessionsExpired: Instrument = {
  name: 'flow_control.sessions.expired',
  description: 'Sessions that ended because they were inactive for too long.',
  unit: '{session}',
};

export const cappedRequests: Instrument = {
  name: 'flow_control.capped',
  description: 'Requests that wait because their fairness ID runs as much as it may.',
  unit: '{request}',
};

export const ignoredReports: Instrument = {
  name: 'flow_control.ignored_reports',
  description: 'Reports of usage that went backwards or exceeded 2^53, and that policies which share by cost ignored.',
  unit: '{report}',
};

export const evictions: Instrument = {
  name: 'flow_control.evictions',
  description: 'Running requests that were asked to leave for one of higher priority.',
  unit: '{request}',
};

export const pluginErrors: Instrument = {
  name: 'flow_control.plugin_errors',
  description: 'Faults of policies, detectors, pickers and listeners.',
  unit: '{error}',
};

export const shadow: Instrument = {
  name: 'flow_control.shadow',
  description:
    '1 in shadow mode: nothing is held or dropped, and every other metric is what would have been. Absent otherwise.',
  unit: '1',
};

export const shadowPassed: Instrument = {
  name: 'flow_control.shadow.passed',
  description: 'Requests that shadow mode let through.',
  unit: '{request}',
};

export const shadowWaited: Instrument = {
  name: 'flow_control.shadow.would_have_waited',
  description: 'Requests that shadow mode let through and that would have waited, whatever became of them then.',
  unit: '{request}',
};

export const shadowDropped: Instrument = {
  name: 'flow_control.shadow.would_have_been_dropped',
  description: 'Requests that shadow mode let through and that would have been rejected, or evicted while they waited.',
  unit: '{request}',
};

export const shadowEvicted: Instrument = {
  name: 'flow_control.shadow.would_have_been_evicted',
  description: 'Running requests that would have been evicted for one of higher priority.',
  unit: '{request}',
};

export const attributes = {
  outcome: 'flow_control.outcome',
  priority: 'flow_control.priority',
  fairnessId: 'flow_control.fairness_id',
  /** `requests` or `bytes`. */
  resource: 'flow_control.resource',
  pool: 'flow_control.pool',
  /** The group that shares a quota. */
  quotaGroup: 'flow_control.quota.group',
  quotaUnit: 'flow_control.quota.unit',
  /** The span of a quota, seconds. */
  quotaPer: 'flow_control.quota.per',
  /** True for a quota that answers told of. */
  quotaLearnt: 'flow_control.quota.learnt',
  /** `running`, `idle` or `waiting`. */
  sessionState: 'flow_control.session.state',
  /** Waiting requests of the band when this one came, itself included. */
  queuePosition: 'flow_control.queue.position',
  /** Why a request was dropped. */
  errorType: 'error.type',
} as const;

/** The span of a request that waits. */
export const waitSpan = 'flow_control.wait';
