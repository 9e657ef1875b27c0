/**
 * Every metric: its name without the prefix, its type and labels, and where its samples come from. docs/metrics.md is
 * held against it.
 */
import type { ControllerFigures, QuotaFigure } from '../../index.js';
import * as catalogue from '../metrics/catalogue.js';
import { counter, type Described, type FigureOf, max, sum } from '../metrics/catalogue.js';
import { distinctQuotas } from '../metrics/distinct-quotas.js';
import type { BandFigures } from '../metrics/labelled-flows.js';
import { utilization } from '../metrics/utilization.js';
import type { FlowReadings } from './flow-meter.js';
import type { Family, Labels, Sample } from './scraped-metric.js';

const flowLabels = ['fairness_id', 'priority', 'inference_pool', 'model_name', 'target_model_name'];

const fewFlowLabels = ['fairness_id', 'priority', 'inference_pool'];

/** One sample, or none where there is nothing to tell. */
function one(labels: Labels, value: number | undefined): Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}

/** However many samples. */
function rows(
  name: string,
  { kind, help }: Described,
  labels: readonly string[],
  samples: (flow: FlowReadings) => Iterable<Sample>,
): Family<FlowReadings> {
  if (kind === 'counter') return { name, type: kind, help, labels, samples };
  return { name, type: 'gauge', aggregator: kind, help, labels, samples };
}

/** One sample. */
function pool(name: string, figure: FigureOf<ControllerFigures>): Family<FlowReadings> {
  return rows(name, figure, ['inference_pool'], ({ figures, pool }) => one(pool, figure.read(figures)));
}

/** One sample for every band. */
function bands(name: string, figure: FigureOf<BandFigures>): Family<FlowReadings> {
  return rows(name, figure, ['priority', 'inference_pool'], ({ figures, pool }) =>
    figures.bands.flatMap((band) => one({ priority: String(band.priority), ...pool }, figure.read(band))),
  );
}

/**
 * One sample for every quota of every group. `per` is its span in seconds: a group may have a limit for the minute and
 * one for the day.
 */
function quotas(name: string, figure: FigureOf<QuotaFigure>): Family<FlowReadings> {
  return rows(name, figure, ['group', 'unit', 'per', 'inference_pool'], ({ figures, pool }) =>
    distinctQuotas(figures.quotas?.quotas ?? []).flatMap((quota) => {
      const { group, unit, perMs } = quota;
      return one({ group, unit, per: String(perMs / 1_000), ...pool }, figure.read(quota));
    }),
  );
}

function queue(name: string, described: Described, figure: 'requests' | 'bytes'): Family<FlowReadings> {
  return rows(name, described, flowLabels, (flow) =>
    Array.from(flow.queueRows(), (row) => ({ sharedLabels: row.labels, value: row[figure] })),
  );
}

function inFlight(name: string, help: string, figure: 'requests' | 'tokens'): Family<FlowReadings> {
  return rows(name, { kind: 'sum', help }, fewFlowLabels, (flow) =>
    Array.from(flow.inFlightRows(), (row) => ({ labels: row.labels, value: row[figure] })),
  );
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
  queue('flow_control_queue_size', catalogue.queueRequests, 'requests'),
  queue('flow_control_queue_bytes', catalogue.queueBytes, 'bytes'),
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
  pool('flow_control_pool_saturation', catalogue.saturation),
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
  bands(
    'flow_control_capacity_utilization_requests',
    max('Waiting requests of a band as a share of its limit; absent without a limit.', ({ waiting, limits }) =>
      utilization(waiting, limits.maxRequests),
    ),
  ),
  bands(
    'flow_control_capacity_utilization_bytes',
    max('Waiting bytes of a band as a share of its limit; absent without a limit.', ({ waitingBytes, limits }) =>
      utilization(waitingBytes, limits.maxBytes),
    ),
  ),
  pool(
    'flow_control_global_capacity_utilization_requests',
    max('Waiting requests as a share of the global limit; absent without a limit.', ({ stats, limits }) =>
      utilization(stats.waiting, limits.maxRequests),
    ),
  ),
  pool(
    'flow_control_global_capacity_utilization_bytes',
    max('Waiting bytes as a share of the global limit; absent without a limit.', ({ stats, limits }) =>
      utilization(stats.waitingBytes, limits.maxBytes),
    ),
  ),
  {
    name: 'flow_control_stale_endpoints',
    type: 'gauge',
    help: 'Endpoints whose figures were missing or stale at the last reading of a detector.',
    labels: ['detector'],
    aggregator: 'max',
    samples: staleEndpoints,
  },
  pool('flow_control_revocations_issued_total', catalogue.evictions),
  {
    name: 'flow_control_revocations_total',
    type: 'counter',
    help: 'Running requests that were asked to leave and gave up their seat.',
    labels: ['outcome', 'inference_pool'],
    samples: ({ victims, pool }) => one({ outcome: 'confirmed', ...pool }, victims.confirmed),
  },
  pool(
    'flow_control_reclaim_target',
    sum(
      'Saturation above the ceiling of the waiting band that lacks most. Absent without eviction.',
      ({ stats }) => stats.reclaim?.target,
    ),
  ),
  pool(
    'flow_control_pending_reclaim',
    sum(
      'Saturation that running requests which were asked to leave will free. Absent without eviction.',
      ({ stats }) => stats.reclaim?.pending,
    ),
  ),
  rows('program_aware_jains_fairness_index', catalogue.fairnessIndex, [], ({ figures, poolIfNamed }) =>
    one(poolIfNamed, catalogue.fairnessIndex.read(figures)),
  ),
  rows('flow_control_service_cost_total', catalogue.serviceCost, fewFlowLabels, (flow) => flow.serviceRows()),
  rows('flow_control_fairness_counter_lag', catalogue.counterLag, fewFlowLabels, (flow) => flow.lagRows()),
  bands('flow_control_band_fairness_index', {
    ...catalogue.bandFairnessIndex,
    help: "Jain's index of received over owed cost of the last five minutes, by band, under policies that share by cost; 1 is fair.",
  }),
  quotas('flow_control_quota_limit', catalogue.quotaLimit),
  quotas('flow_control_quota_used', catalogue.quotaUsed),
  quotas('flow_control_quota_reserved', catalogue.quotaReserved),
  quotas('flow_control_quota_reset_seconds', catalogue.quotaReset),
  quotas('flow_control_quota_wait_seconds', catalogue.quotaWait),
  quotas(
    'flow_control_quota_learnt',
    max('1 for a quota that answers told of, 0 for a configured one.', ({ isLearnt }) => Number(isLearnt)),
  ),
  pool('flow_control_quota_refusals_total', catalogue.quotaRefusals),
  pool('flow_control_quota_unreported_total', catalogue.quotaUnreported),
  pool('flow_control_quota_ignored_total', catalogue.quotaIgnored),
  rows(
    'flow_control_sessions',
    {
      kind: 'sum',
      help: 'Sessions that are resident, and new ones that are held back. Absent where no detector limits sessions.',
    },
    ['state', 'inference_pool'],
    ({ figures, pool }) =>
      catalogue.sessionStates(figures).map(([state, value]) => ({ labels: { state, ...pool }, value })),
  ),
  pool('flow_control_session_tokens', catalogue.sessionTokens),
  pool('flow_control_sessions_expired_total', catalogue.sessionsExpired),
  pool('flow_control_ignored_reports_total', catalogue.ignoredReports),
  pool('flow_control_in_flight_requests', catalogue.inFlight),
  pool(
    'flow_control_in_flight_tokens',
    sum('Tokens booked by leases not yet released.', ({ stats }) => stats.inFlightTokens),
  ),
  pool('flow_control_oldest_lease_seconds', catalogue.oldestLease),
  pool('flow_control_overdue_leases_total', catalogue.overdueLeases),
  inFlight(
    'flow_control_flow_in_flight_requests',
    'Leases not yet released, by flow; absent while it has none.',
    'requests',
  ),
  inFlight(
    'flow_control_flow_in_flight_tokens',
    'Tokens booked by leases not yet released, by flow; absent while it has none.',
    'tokens',
  ),
  pool(
    'flow_control_enqueued_total',
    counter('Requests handed to flow control, those that still wait included.', ({ stats }) => stats.enqueued),
  ),
  pool(
    'flow_control_queue_tokens',
    sum('Estimated tokens of the requests that wait.', ({ waitingTokens }) => waitingTokens),
  ),
  bands('flow_control_capped_requests', catalogue.cappedRequests),
  pool(
    'flow_control_endpoints',
    max(
      'Model servers that can be had; absent for a controller without a pool.',
      ({ availableEndpoints }) => availableEndpoints,
    ),
  ),
  pool('flow_control_plugin_errors_total', catalogue.pluginErrors),
  pool('flow_control_shadow', catalogue.shadow),
  pool('flow_control_shadow_passed_total', catalogue.shadowPassed),
  pool('flow_control_shadow_would_have_waited_total', catalogue.shadowWaited),
  rows(
    'flow_control_shadow_would_have_been_dropped_total',
    catalogue.shadowDropped,
    ['outcome', 'reason', 'inference_pool'],
    ({ figures: { stats }, pool }) =>
      (stats.shadow?.wouldHaveBeenDropped ?? []).map(({ outcome, reason, requests }) => ({
        labels: { outcome, reason, ...pool },
        value: requests,
      })),
  ),
  pool('flow_control_shadow_would_have_been_evicted_total', catalogue.shadowEvicted),
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
