/**
 * Every metric: its name without the prefix, its type and labels, and where its samples come from. docs/metrics.md is
 * held against it.
 *
 * Longer than most files, because it is one list.
 */
import type { QuotaFigure } from '../../index.js';
import { distinctQuotas } from '../metrics/distinct-quotas.js';
import { utilization } from '../metrics/utilization.js';
import type { FlowReadings } from './flow-meter.js';
import type { Family, Labels, Sample } from './scraped-metric.js';

const flowLabels = ['fairness_id', 'priority', 'inference_pool', 'model_name', 'target_model_name'];

const quotaLabels = ['group', 'unit', 'per', 'inference_pool'];

/** One sample, or none where there is nothing to tell. */
function one(labels: Labels, value: number | undefined): Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}

function queue(flow: FlowReadings, figure: 'requests' | 'bytes'): Sample[] {
  return Array.from(flow.queueRows(), (row) => ({ sharedLabels: row.labels, value: row[figure] }));
}

/** Endpoints that detectors are blind to. Detectors of one type, such as those of two stages, are counted together. */
function staleEndpoints({ detectors, poolIfNamed }: FlowReadings): Sample[] {
  const counts = new Map<string, number>();
  for (const detector of detectors) {
    const stale: unknown = Reflect.get(detector, 'staleEndpoints');
    if (typeof stale === 'number') counts.set(detector.type, (counts.get(detector.type) ?? 0) + stale);
  }
  return Array.from(counts, ([detector, value]) => ({ labels: { detector, ...poolIfNamed }, value }));
}

/** The saturation of each stage, from detectors that judge stages apart; where several do, the fullest reading. */
function stageSaturation({ detectors, pool }: FlowReadings): Sample[] {
  const fullest = new Map<string, number>();
  for (const detector of detectors) {
    const readings: object = Reflect.get(detector, 'stageSaturation') ?? {};
    for (const [stage, reading] of Object.entries(readings)) {
      if (typeof reading === 'number') fullest.set(stage, Math.max(fullest.get(stage) ?? 0, reading));
    }
  }
  return Array.from(fullest, ([stage, value]) => ({ labels: { stage, ...pool }, value }));
}

/**
 * One sample for every quota of every group. `per` is its span in seconds: a group may have a limit for the minute and
 * one for the day.
 */
function quotas({ figures, pool }: FlowReadings, read: (quota: QuotaFigure) => number): Sample[] {
  return distinctQuotas(figures.quotas?.quotas ?? []).map((quota) => {
    const { group, unit, perMs } = quota;
    return { labels: { group, unit, per: String(perMs / 1_000), ...pool }, value: read(quota) };
  });
}

/** The part of its limit that each band uses, where it has one. */
function ofBands(
  { figures, pool }: FlowReadings,
  used: 'waiting' | 'waitingBytes',
  max: 'maxRequests' | 'maxBytes',
): Sample[] {
  return figures.bands.flatMap((band) =>
    one({ priority: String(band.priority), ...pool }, utilization(band[used], band.limits[max])),
  );
}

export const families: readonly Family<FlowReadings>[] = [
  {
    name: 'flow_control_request_queue_duration_seconds',
    type: 'histogram',
    help: 'Time requests spend in the flow control layer.',
    labels: [...flowLabels, 'outcome'],
    *samples({ tally }, name) {
      for (const durations of [...tally.durations()]) yield* durations.samples(name);
    },
    reset: ({ tally }) => tally.resetDurations(),
  },
  {
    name: 'flow_control_queue_size',
    type: 'gauge',
    help: 'Requests that wait in flow control.',
    labels: flowLabels,
    samples: (flow) => queue(flow, 'requests'),
  },
  {
    name: 'flow_control_queue_bytes',
    type: 'gauge',
    help: 'Bytes of the requests that wait in flow control.',
    labels: flowLabels,
    samples: (flow) => queue(flow, 'bytes'),
  },
  {
    name: 'flow_control_dispatch_cycle_duration_seconds',
    type: 'histogram',
    help: 'Time of each walk over the queues.',
    labels: [],
    samples: ({ tally }, name) => tally.cycles.samples(name),
    reset: ({ tally }) => tally.cycles.reset(),
  },
  {
    name: 'flow_control_request_enqueue_duration_seconds',
    type: 'histogram',
    help: 'Time to enqueue or to decide a request; outcome NotYetFinalized waits.',
    labels: ['fairness_id', 'priority', 'outcome'],
    *samples({ tally }, name) {
      for (const durations of [...tally.enqueueDurations()]) yield* durations.samples(name);
    },
  },
  {
    name: 'flow_control_pool_saturation',
    type: 'gauge',
    help: 'Saturation of the pool when it was last read; 1 is full.',
    labels: ['inference_pool'],
    aggregator: 'max',
    samples: ({ figures, pool }) => one(pool, figures.stats.saturation),
  },
  {
    name: 'flow_control_stage_saturation',
    type: 'gauge',
    help: 'Saturation of each stage of disaggregated serving; absent where a detector does not judge stages apart.',
    labels: ['stage', 'inference_pool'],
    aggregator: 'max',
    samples: stageSaturation,
  },
  {
    name: 'flow_control_requests_total',
    type: 'counter',
    help: 'Requests by what became of them.',
    labels: ['outcome', 'priority', 'inference_pool'],
    *samples({ tally, pool }) {
      for (const { label: priority, outcomes } of tally.outcomes()) {
        for (const [outcome, value] of Object.entries(outcomes))
          yield { labels: { outcome, priority, ...pool }, value };
      }
    },
    reset: ({ tally }) => tally.resetOutcomes(),
  },
  {
    name: 'flow_control_capacity_utilization_requests',
    type: 'gauge',
    help: 'Waiting requests of a band as a share of its limit; absent without a limit.',
    labels: ['priority', 'inference_pool'],
    aggregator: 'max',
    samples: (flow) => ofBands(flow, 'waiting', 'maxRequests'),
  },
  {
    name: 'flow_control_capacity_utilization_bytes',
    type: 'gauge',
    help: 'Waiting bytes of a band as a share of its limit; absent without a limit.',
    labels: ['priority', 'inference_pool'],
    aggregator: 'max',
    samples: (flow) => ofBands(flow, 'waitingBytes', 'maxBytes'),
  },
  {
    name: 'flow_control_global_capacity_utilization_requests',
    type: 'gauge',
    help: 'Waiting requests as a share of the global limit; absent without a limit.',
    labels: ['inference_pool'],
    aggregator: 'max',
    samples: ({ figures, pool }) => one(pool, utilization(figures.stats.waiting, figures.limits.maxRequests)),
  },
  {
    name: 'flow_control_global_capacity_utilization_bytes',
    type: 'gauge',
    help: 'Waiting bytes as a share of the global limit; absent without a limit.',
    labels: ['inference_pool'],
    aggregator: 'max',
    samples: ({ figures, pool }) => one(pool, utilization(figures.stats.waitingBytes, figures.limits.maxBytes)),
  },
  {
    name: 'flow_control_stale_endpoints',
    type: 'gauge',
    help: 'Endpoints whose figures were missing or stale at the last reading of a detector.',
    labels: ['detector'],
    aggregator: 'max',
    samples: staleEndpoints,
  },
  {
    name: 'flow_control_revocations_issued_total',
    type: 'counter',
    help: 'Running requests that were asked to leave for one of higher priority.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.evictedInFlight),
  },
  {
    name: 'flow_control_revocations_total',
    type: 'counter',
    help: 'Running requests that were asked to leave and gave up their seat.',
    labels: ['outcome', 'inference_pool'],
    samples: ({ victims, pool }) => one({ outcome: 'confirmed', ...pool }, victims.confirmed),
  },
  {
    name: 'flow_control_reclaim_target',
    type: 'gauge',
    help: 'Saturation above the ceiling of the waiting band that lacks most. Absent without eviction.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.reclaim?.target),
  },
  {
    name: 'flow_control_pending_reclaim',
    type: 'gauge',
    help: 'Saturation that running requests which were asked to leave will free. Absent without eviction.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.reclaim?.pending),
  },
  {
    name: 'program_aware_jains_fairness_index',
    type: 'gauge',
    help: 'The least fairness index of the policies that keep one; 1 is fair. Absent when none does.',
    labels: [],
    aggregator: 'min',
    samples: ({ figures, poolIfNamed }) => one(poolIfNamed, figures.stats.fairnessIndex),
  },
  {
    name: 'flow_control_service_cost_total',
    type: 'counter',
    help: 'Cost of the requests that ended, in the unit of a fairness policy that shares by cost.',
    labels: ['fairness_id', 'priority', 'inference_pool'],
    samples: (flow) => flow.serviceRows(),
  },
  {
    name: 'flow_control_fairness_counter_lag',
    type: 'gauge',
    help: 'Cost that a fairness ID which waits has received beyond those that go next, under policies that share by cost.',
    labels: ['fairness_id', 'priority', 'inference_pool'],
    aggregator: 'max',
    samples: (flow) => flow.lagRows(),
  },
  {
    name: 'flow_control_band_fairness_index',
    type: 'gauge',
    help: "Jain's index of received over owed cost of the last five minutes, by band, under policies that share by cost; 1 is fair.",
    labels: ['priority', 'inference_pool'],
    aggregator: 'min',
    samples: ({ figures, pool }) =>
      figures.bands.flatMap((band) => one({ priority: String(band.priority), ...pool }, band.service()?.fairnessIndex)),
  },
  {
    name: 'flow_control_quota_limit',
    type: 'gauge',
    help: 'Units that a quota of a hosted model allows in its span.',
    labels: quotaLabels,
    aggregator: 'max',
    samples: (flow) => quotas(flow, ({ limit }) => limit),
  },
  {
    name: 'flow_control_quota_used',
    type: 'gauge',
    help: 'Units of a quota that were settled and are not free again.',
    labels: quotaLabels,
    aggregator: 'max',
    samples: (flow) => quotas(flow, ({ used }) => used),
  },
  {
    name: 'flow_control_quota_reserved',
    type: 'gauge',
    help: 'Units of a quota that running requests hold by their estimates.',
    labels: quotaLabels,
    aggregator: 'max',
    samples: (flow) => quotas(flow, ({ reserved }) => reserved),
  },
  {
    name: 'flow_control_quota_reset_seconds',
    type: 'gauge',
    help: 'Time until all of a quota is free again, if nothing more is taken.',
    labels: quotaLabels,
    aggregator: 'max',
    samples: (flow) => quotas(flow, ({ resetsInMs }) => resetsInMs / 1_000),
  },
  {
    name: 'flow_control_quota_wait_seconds',
    type: 'gauge',
    help: 'Time until a quota has room for one unit; 0 while it has.',
    labels: quotaLabels,
    aggregator: 'max',
    samples: (flow) => quotas(flow, ({ waitMs }) => waitMs / 1_000),
  },
  {
    name: 'flow_control_quota_learnt',
    type: 'gauge',
    help: '1 for a quota that answers told of, 0 for a configured one.',
    labels: quotaLabels,
    aggregator: 'max',
    samples: (flow) => quotas(flow, ({ isLearnt }) => Number(isLearnt)),
  },
  {
    name: 'flow_control_quota_refusals_total',
    type: 'counter',
    help: 'Answers of hosted models that put a request off (429, 529).',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.quotas?.refusals),
  },
  {
    name: 'flow_control_quota_unreported_total',
    type: 'counter',
    help: 'Requests under a quota that ended without a report of what they consumed, so that their estimates stand.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.quotas?.unreported),
  },
  {
    name: 'flow_control_quota_ignored_total',
    type: 'counter',
    help: 'Figures in reports and headers that cannot be right, and that quotas ignored.',
    labels: ['inference_pool'],
    samples: ({ figures: { quotas: told }, pool }) => one(pool, told && told.ignoredReports + told.ignoredFigures),
  },
  {
    name: 'flow_control_sessions',
    type: 'gauge',
    help: 'Sessions that are resident, and new ones that are held back. Absent where no detector limits sessions.',
    labels: ['state', 'inference_pool'],
    samples: ({ figures: { sessions }, pool }) => [
      ...one({ state: 'running', ...pool }, sessions && sessions.resident - sessions.idle - (sessions.elsewhere ?? 0)),
      ...one({ state: 'idle', ...pool }, sessions?.idle),
      ...one({ state: 'elsewhere', ...pool }, sessions?.elsewhere),
      ...one({ state: 'waiting', ...pool }, sessions?.waiting),
    ],
  },
  {
    name: 'flow_control_session_tokens',
    type: 'gauge',
    help: 'Tokens that resident sessions hold, over all endpoints.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.sessions?.tokens),
  },
  {
    name: 'flow_control_sessions_expired_total',
    type: 'counter',
    help: 'Sessions that ended because they were inactive for too long.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.sessions?.expired),
  },
  {
    name: 'flow_control_ignored_reports_total',
    type: 'counter',
    help: 'Reports of usage that went backwards or exceeded 2^53, and that policies which share by cost ignored.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.ignoredReports),
  },
  {
    name: 'flow_control_in_flight_requests',
    type: 'gauge',
    help: 'Leases not yet released.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.inFlight),
  },
  {
    name: 'flow_control_in_flight_tokens',
    type: 'gauge',
    help: 'Tokens booked by leases not yet released.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.inFlightTokens),
  },
  {
    name: 'flow_control_oldest_lease_seconds',
    type: 'gauge',
    help: 'How long the oldest unreleased lease is held; 0 while nothing runs.',
    labels: ['inference_pool'],
    aggregator: 'max',
    samples: ({ figures, pool }) => one(pool, (figures.stats.oldestLeaseMs ?? 0) / 1_000),
  },
  {
    name: 'flow_control_overdue_leases_total',
    type: 'counter',
    help: 'Leases that were held longer than maxLeaseMs.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.overdueLeases),
  },
  {
    name: 'flow_control_flow_in_flight_requests',
    type: 'gauge',
    help: 'Leases not yet released, by flow; absent while it has none.',
    labels: ['fairness_id', 'priority', 'inference_pool'],
    samples: (flow) => Array.from(flow.inFlightRows(), ({ labels, requests }) => ({ labels, value: requests })),
  },
  {
    name: 'flow_control_flow_in_flight_tokens',
    type: 'gauge',
    help: 'Tokens booked by leases not yet released, by flow; absent while it has none.',
    labels: ['fairness_id', 'priority', 'inference_pool'],
    samples: (flow) => Array.from(flow.inFlightRows(), ({ labels, tokens }) => ({ labels, value: tokens })),
  },
  {
    name: 'flow_control_enqueued_total',
    type: 'counter',
    help: 'Requests handed to flow control, those that still wait included.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.enqueued),
  },
  {
    name: 'flow_control_queue_tokens',
    type: 'gauge',
    help: 'Estimated tokens of the requests that wait.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.waitingTokens),
  },
  {
    name: 'flow_control_capped_requests',
    type: 'gauge',
    help: 'Requests that wait because their fairness ID runs as much as it may.',
    labels: ['priority', 'inference_pool'],
    samples: ({ figures, pool }) =>
      figures.bands.flatMap(({ priority, waitingAtCap }) => one({ priority: String(priority), ...pool }, waitingAtCap)),
  },
  {
    name: 'flow_control_endpoints',
    type: 'gauge',
    help: 'Model servers that can be had; absent for a controller without a pool.',
    labels: ['inference_pool'],
    aggregator: 'max',
    samples: ({ figures, pool }) => one(pool, figures.availableEndpoints),
  },
  {
    name: 'flow_control_plugin_errors_total',
    type: 'counter',
    help: 'Faults of policies, detectors, pickers and listeners.',
    labels: ['inference_pool'],
    samples: ({ figures, pool }) => one(pool, figures.stats.pluginErrors),
  },
  {
    name: 'flow_control_shadow',
    type: 'gauge',
    help: '1 in shadow mode: nothing is held or dropped, and every other metric is what would have been. Absent otherwise.',
    labels: ['inference_pool'],
    aggregator: 'max',
    samples: ({ figures: { stats }, pool }) => one(pool, stats.shadow && 1),
  },
  {
    name: 'flow_control_shadow_passed_total',
    type: 'counter',
    help: 'Requests that shadow mode let through.',
    labels: ['inference_pool'],
    samples: ({ figures: { stats }, pool }) => one(pool, stats.shadow?.passed),
  },
  {
    name: 'flow_control_shadow_would_have_waited_total',
    type: 'counter',
    help: 'Requests that shadow mode let through and that would have waited, whatever became of them then.',
    labels: ['inference_pool'],
    samples: ({ figures: { stats }, pool }) => one(pool, stats.shadow?.wouldHaveWaited),
  },
  {
    name: 'flow_control_shadow_would_have_been_dropped_total',
    type: 'counter',
    help: 'Requests that shadow mode let through and that would have been rejected, or evicted while they waited.',
    labels: ['outcome', 'reason', 'inference_pool'],
    samples: ({ figures: { stats }, pool }) =>
      (stats.shadow?.wouldHaveBeenDropped ?? []).map(({ outcome, reason, requests }) => ({
        labels: { outcome, reason, ...pool },
        value: requests,
      })),
  },
  {
    name: 'flow_control_shadow_would_have_been_evicted_total',
    type: 'counter',
    help: 'Running requests that would have been evicted for one of higher priority.',
    labels: ['inference_pool'],
    samples: ({ figures: { stats }, pool }) => one(pool, stats.shadow?.wouldHaveBeenEvicted),
  },
];

/** In Dynamo's name, so without the prefix. */
export const dynamoRejections: Family<FlowReadings> = {
  name: 'dynamo_frontend_model_rejection_total',
  type: 'counter',
  help: 'Requests rejected because every worker is busy.',
  labels: ['model', 'endpoint'],
  samples: ({ modelRejections }) => modelRejections?.samples() ?? [],
  reset: ({ modelRejections }) => modelRejections?.reset(),
};
