/** A controller's figures with their meaning, for all exporters. Longer than most files, because it is one list. */
import type { ControllerFigures } from '../../index.js';
import type { CapacityFigure, QuotaFigure } from '../../types/index.js';
import type { BandFigures } from './labelled-flows.js';

/** A counter, or how those who read several processes put a gauge together. */
export type FigureKind = 'counter' | 'sum' | 'max' | 'min';

export interface Described {
  readonly kind: FigureKind;
  readonly help: string;
}

/** What tells a row from the others: those of a band have a priority. */
export interface RowLabels {
  readonly priority?: number;
  readonly resource?: 'requests' | 'bytes';
  readonly group?: string;
  readonly unit?: string;
  readonly per?: number;
  readonly learnt?: boolean;
  readonly state?: string;
  readonly outcome?: string;
  readonly reason?: string;
  readonly endpoint?: string;
  readonly dimension?: string;
  readonly detector?: string;
  readonly stage?: string;
}

export interface Row {
  readonly labels: RowLabels;
  readonly value: number;
}

export interface Figure extends Described {
  /** Without the prefix. */
  readonly prometheus: string;
  /** Undefined: it is told to Prometheus alone. Figures of one name are one instrument. */
  readonly openTelemetry: string | undefined;
  /** For OpenTelemetry; Prometheus has it in the name. */
  readonly unit: string;
  /** Those that Prometheus has; the name says the others. */
  readonly labels: readonly (keyof RowLabels)[];
  /** True where a row that is gone means 0. */
  readonly endsAtZero: boolean;
  rows(figures: ControllerFigures): Row[];
}

type Read<T> = (of: T) => number | undefined;
/** A figure of `T`; undefined where there is nothing to tell. */
interface FigureOf<T> extends Described {
  readonly read: Read<T>;
}
type Names = readonly [prometheus: string, openTelemetry?: string, unit?: string];

const figureOf =
  (kind: FigureKind) =>
  <T>(help: string, read: Read<T>): FigureOf<T> => ({ kind, help, read });
const counter = figureOf('counter');
const sum = figureOf('sum');
const max = figureOf('max');
const min = figureOf('min');

function figure(
  [prometheus, openTelemetry, unit = '1']: Names,
  { kind, help }: Described,
  labels: readonly (keyof RowLabels)[],
  rows: Figure['rows'],
): Figure {
  return { prometheus, openTelemetry, unit, kind, help, labels, endsAtZero: false, rows };
}

function row(labels: RowLabels, value: number | undefined): Row[] {
  return value === undefined ? [] : [{ labels, value }];
}

/** One row, or none. */
function controller(names: Names, of: FigureOf<ControllerFigures>): Figure {
  return figure(names, of, [], (figures) => row({}, of.read(figures)));
}

/** A row for every band that has the figure. */
function band(names: Names, of: FigureOf<BandFigures>): Figure {
  return figure(names, of, ['priority'], ({ bands }) =>
    bands.flatMap((each) => row({ priority: each.priority }, of.read(each))),
  );
}

/** A row for every quota of every group. `per`: its span in seconds, as a group may limit the minute and the day. */
function quota(names: Names, of: FigureOf<QuotaFigure>): Figure {
  return figure(names, of, ['group', 'unit', 'per'], ({ quotas }) =>
    distinctQuotas(quotas?.quotas ?? []).flatMap((each) => {
      const { group, unit, perMs, isLearnt } = each;
      return row({ group, unit, per: perMs / 1_000, learnt: isLearnt }, of.read(each));
    }),
  );
}

/** A row for every dimension of every endpoint that a constraint counts. */
function capacity(names: Names, of: FigureOf<CapacityFigure>): Figure {
  return figure(names, of, ['endpoint', 'dimension'], (figures) =>
    figures.capacity.slice(0, mostQuotas).flatMap((each) => {
      const { endpoint, dimension } = each;
      return row({ endpoint, dimension }, of.read(each));
    }),
  );
}

/** A row for every group of endpoints that bands name. */
function group(names: Names, of: FigureOf<ControllerFigures['groups'][number]>): Figure {
  return figure(names, of, ['group'], ({ groups }) =>
    groups.flatMap((each) => row({ group: each.group }, of.read(each))),
  );
}

/** Groups may be as many as endpoints and models; a scrape bears so many. */
const mostQuotas = 1000;

/** One for each group, unit and span: of several, which is an error, the one with the longest wait. */
function distinctQuotas(all: readonly QuotaFigure[]): readonly QuotaFigure[] {
  const distinct = new Map<string, QuotaFigure>();
  for (const quota of all) {
    const key = JSON.stringify([quota.group, quota.unit, quota.perMs]);
    const known = distinct.get(key);
    if (known === undefined ? distinct.size < mostQuotas : quota.waitMs > known.waitMs) distinct.set(key, quota);
  }
  return [...distinct.values()];
}

type Waiting = Pick<BandFigures, 'waiting' | 'waitingBytes' | 'limits'>;

/** How full a limit is, in requests and in bytes. */
function utilization(
  [prometheus, openTelemetry]: readonly [prometheus: string, openTelemetry: string],
  help: string,
  limited: (figures: ControllerFigures) => readonly (Waiting & { readonly priority?: number })[],
  isOfBands: boolean,
): Figure[] {
  const of = (resource: 'requests' | 'bytes', read: Read<Waiting>): Figure => ({
    ...figure([`${prometheus}_${resource}`, openTelemetry], max(help, read), isOfBands ? ['priority'] : [], (figures) =>
      limited(figures).flatMap((each) =>
        row({ resource, ...(each.priority !== undefined && { priority: each.priority }) }, read(each)),
      ),
    ),
    endsAtZero: isOfBands,
  });
  return [
    of('requests', ({ waiting, limits }) => shareOf(waiting, limits.maxRequests)),
    of('bytes', ({ waitingBytes, limits }) => shareOf(waitingBytes, limits.maxBytes)),
  ];
}

/** Undefined where there is no limit: absent is not empty. A limit of 0 is always full. */
function shareOf(used: number, most: number): number | undefined {
  if (most === Infinity) return undefined;
  return most === 0 ? 1 : used / most;
}

export const fairnessIndex: FigureOf<ControllerFigures> = min(
  'The least fairness index of the policies that keep one; 1 is fair. Absent when none does.',
  ({ stats }) => stats.fairnessIndex,
);

export const figures: readonly Figure[] = [
  controller(
    ['flow_control_pool_saturation', 'flow_control.saturation'],
    max('Saturation of the pool when it was last read; 1 is full.', ({ stats }) => stats.saturation),
  ),
  figure(
    ['flow_control_detector_saturation', 'flow_control.detector.saturation'],
    {
      kind: 'max',
      help: 'The last reading of each detector that another is made of, by stage where these are judged apart.',
    },
    ['detector', 'stage'],
    ({ detectors }) =>
      detectors.map(({ detector, stage = '', saturation }) => ({ labels: { detector, stage }, value: saturation })),
  ),
  ...utilization(
    ['flow_control_capacity_utilization', 'flow_control.capacity.utilization'],
    'What waits in a band as a share of its limit, in requests or bytes; absent without a limit.',
    ({ bands }) => bands,
    true,
  ),
  ...utilization(
    ['flow_control_global_capacity_utilization', 'flow_control.global_capacity.utilization'],
    'What waits as a share of the global limit, in requests or bytes; absent without a limit.',
    ({ stats: { waiting, waitingBytes }, limits }) => [{ waiting, waitingBytes, limits }],
    false,
  ),
  controller(
    ['flow_control_revocations_issued_total', 'flow_control.evictions', '{request}'],
    counter(
      'Running requests that were asked to leave for one of higher priority.',
      ({ stats }) => stats.evictedInFlight,
    ),
  ),
  controller(
    ['flow_control_reclaim_target'],
    sum(
      'Saturation above the ceiling of the waiting band that lacks most. Absent without eviction.',
      ({ stats }) => stats.reclaim?.target,
    ),
  ),
  controller(
    ['flow_control_pending_reclaim'],
    sum(
      'Saturation that running requests which were asked to leave will free. Absent without eviction.',
      ({ stats }) => stats.reclaim?.pending,
    ),
  ),
  band(
    ['flow_control_band_fairness_index', 'flow_control.fairness.band_index'],
    min(
      "Jain's index of received over owed cost of the last five minutes, by band, under policies that share by cost; 1 is fair.",
      (each) => each.service()?.fairnessIndex,
    ),
  ),
  quota(
    ['flow_control_quota_limit', 'flow_control.quota.limit', '{unit}'],
    max('Units that a quota of a hosted model allows in its span.', ({ limit }) => limit),
  ),
  quota(
    ['flow_control_quota_used', 'flow_control.quota.used', '{unit}'],
    max('Units of a quota that were settled and are not free again.', ({ used }) => used),
  ),
  quota(
    ['flow_control_quota_reserved', 'flow_control.quota.reserved', '{unit}'],
    max('Units of a quota that running requests hold by their estimates.', ({ reserved }) => reserved),
  ),
  quota(
    ['flow_control_quota_reset_seconds', 'flow_control.quota.reset', 's'],
    max('Time until all of a quota is free again, if nothing more is taken.', ({ resetsInMs }) => resetsInMs / 1_000),
  ),
  quota(
    ['flow_control_quota_wait_seconds', 'flow_control.quota.wait', 's'],
    max('Time until a quota has room for one unit; 0 while it has.', ({ waitMs }) => waitMs / 1_000),
  ),
  quota(
    ['flow_control_quota_learnt'],
    max('1 for a quota that answers told of, 0 for a configured one.', ({ isLearnt }) => Number(isLearnt)),
  ),
  controller(
    ['flow_control_quota_refusals_total', 'flow_control.quota.refusals', '{response}'],
    counter('Answers of hosted models that put a request off (429, 529).', ({ quotas }) => quotas?.refusals),
  ),
  controller(
    ['flow_control_quota_unreported_total', 'flow_control.quota.unreported', '{request}'],
    counter(
      'Requests under a quota that ended without a report of what they consumed, so that their estimates stand.',
      ({ quotas }) => quotas?.unreported,
    ),
  ),
  controller(
    ['flow_control_quota_ignored_total', 'flow_control.quota.ignored', '{figure}'],
    counter(
      'Figures in reports and headers that cannot be right, and that quotas ignored.',
      ({ quotas }) => quotas && quotas.ignoredReports + quotas.ignoredFigures,
    ),
  ),
  capacity(
    ['flow_control_capacity_used', 'flow_control.capacity.used', '{unit}'],
    sum('What requests hold of an endpoint, in slots, tokens or requests.', ({ used }) => used),
  ),
  capacity(
    ['flow_control_capacity_limit', 'flow_control.capacity.limit', '{unit}'],
    max('What an endpoint has, in slots, tokens or requests.', ({ limit }) => limit),
  ),
  figure(
    ['flow_control_sessions', 'flow_control.sessions', '{session}'],
    {
      kind: 'sum',
      help: 'Sessions that are resident, and new ones that are held back. Absent where no detector limits sessions.',
    },
    ['state'],
    sessionRows,
  ),
  controller(
    ['flow_control_session_tokens', 'flow_control.session.tokens', '{token}'],
    sum('Tokens that resident sessions hold, over all endpoints.', ({ sessions }) => sessions?.tokens),
  ),
  controller(
    ['flow_control_sessions_expired_total', 'flow_control.sessions.expired', '{session}'],
    counter('Sessions that ended because they were inactive for too long.', ({ sessions }) => sessions?.expired),
  ),
  controller(
    ['flow_control_ignored_reports_total', 'flow_control.ignored_reports', '{report}'],
    counter(
      'Reports of usage that went backwards or exceeded 2^53, and that policies which share by cost ignored.',
      ({ stats }) => stats.ignoredReports,
    ),
  ),
  controller(
    ['flow_control_in_flight_requests', 'flow_control.in_flight', '{request}'],
    sum('Leases not yet released.', ({ stats }) => stats.inFlight),
  ),
  controller(
    ['flow_control_in_flight_tokens'],
    sum('Tokens booked by leases not yet released.', ({ stats }) => stats.inFlightTokens),
  ),
  controller(
    ['flow_control_oldest_lease_seconds', 'flow_control.lease.oldest_age', 's'],
    max(
      'How long the oldest unreleased lease is held; 0 while nothing runs.',
      ({ stats }) => (stats.oldestLeaseMs ?? 0) / 1_000,
    ),
  ),
  controller(
    ['flow_control_overdue_leases_total', 'flow_control.lease.overdue', '{lease}'],
    counter('Leases that were held longer than maxLeaseMs.', ({ stats }) => stats.overdueLeases),
  ),
  controller(
    ['flow_control_enqueued_total'],
    counter('Requests handed to flow control, those that still wait included.', ({ stats }) => stats.enqueued),
  ),
  controller(
    ['flow_control_queue_tokens'],
    sum('Estimated tokens of the requests that wait.', ({ waitingTokens }) => waitingTokens),
  ),
  {
    ...band(
      ['flow_control_capped_requests', 'flow_control.capped', '{request}'],
      sum('Requests that wait because their fairness ID runs as much as it may.', ({ waitingAtCap }) => waitingAtCap),
    ),
    endsAtZero: true,
  },
  controller(
    ['flow_control_endpoints'],
    max('Model servers that can be had; absent for a controller without a pool.', ({ pool }) => pool?.available),
  ),
  group(
    ['flow_control_group_dispatched_total'],
    counter('Requests that went to a group of endpoints that bands name.', ({ dispatched }) => dispatched),
  ),
  group(
    ['flow_control_group_overflowed_total'],
    counter('Those of them for which it was not the first group of their band.', ({ overflowed }) => overflowed),
  ),
  controller(
    ['flow_control_plugin_errors_total', 'flow_control.plugin_errors', '{error}'],
    counter('Faults of policies, detectors, pickers and listeners.', ({ stats }) => stats.pluginErrors),
  ),
  controller(
    ['flow_control_shadow', 'flow_control.shadow'],
    max(
      '1 in shadow mode: nothing is held or dropped, and every other metric is what would have been. Absent otherwise.',
      ({ stats }) => stats.shadow && 1,
    ),
  ),
  controller(
    ['flow_control_shadow_passed_total', 'flow_control.shadow.passed', '{request}'],
    counter('Requests that shadow mode let through.', ({ stats }) => stats.shadow?.passed),
  ),
  controller(
    ['flow_control_shadow_would_have_waited_total', 'flow_control.shadow.would_have_waited', '{request}'],
    counter(
      'Requests that shadow mode let through and that would have waited, whatever became of them then.',
      ({ stats }) => stats.shadow?.wouldHaveWaited,
    ),
  ),
  figure(
    ['flow_control_shadow_would_have_been_dropped_total', 'flow_control.shadow.would_have_been_dropped', '{request}'],
    {
      kind: 'counter',
      help: 'Requests that shadow mode let through and that would have been rejected, or evicted while they waited.',
    },
    ['outcome', 'reason'],
    ({ stats }) =>
      (stats.shadow?.wouldHaveBeenDropped ?? []).map(({ requests, ...labels }) => ({ labels, value: requests })),
  ),
  controller(
    ['flow_control_shadow_would_have_been_evicted_total', 'flow_control.shadow.would_have_been_evicted', '{request}'],
    counter(
      'Running requests that would have been evicted for one of higher priority.',
      ({ stats }) => stats.shadow?.wouldHaveBeenEvicted,
    ),
  ),
];

/** By state. `elsewhere` is told where a detector knows of it. */
function sessionRows({ sessions }: ControllerFigures): Row[] {
  if (sessions === undefined) return [];
  const { resident, idle, waiting, elsewhere } = sessions;
  const running = resident - idle - (elsewhere ?? 0);
  const states = { running, idle, ...(elsewhere !== undefined && { elsewhere }), waiting };
  return Object.entries(states).map(([state, value]) => ({ labels: { state }, value }));
}

/** Rows of waiting requests and of flows, which each exporter makes in its own way. */
export const queueRequests: Described = { kind: 'sum', help: 'Requests that wait in flow control.' };

export const queueBytes: Described = { kind: 'sum', help: 'Bytes of the requests that wait in flow control.' };

export const serviceCost: Described = {
  kind: 'counter',
  help: 'Cost of the requests that ended, in the unit of a fairness policy that shares by cost.',
};

export const counterLag: Described = {
  kind: 'max',
  help: 'Cost that a fairness ID which waits has received beyond those that go next, under policies that share by cost.',
};
