/** A controller's figures with their meaning, for all exporters. Longer than most files, because it is one list. */
import type { ControllerFigures } from '../../index.js';
import type { QuotaFigure } from '../../types/index.js';
import type { FlowRows, Row, RowLabels } from './flow-rows.js';
import type { BandFigures } from './labelled-flows.js';

/** A counter, or how those who read several processes put a gauge together. */
export type FigureKind = 'counter' | 'sum' | 'max' | 'min';

export interface Figure {
  readonly kind: FigureKind;
  readonly help: string;
  /** Without the prefix. */
  readonly prometheus: string;
  /** Undefined: it is told to Prometheus alone. Figures of one name are one instrument. */
  readonly openTelemetry: string | undefined;
  /** For OpenTelemetry; Prometheus has it in the name. */
  readonly unit: string;
  /** Those that Prometheus has; the name says the others. */
  readonly labels: readonly (keyof RowLabels)[];
  /** True where a row that is gone means 0. Not of a counter, which must not fall. */
  readonly endsAtZero: boolean;
  rows(figures: ControllerFigures, flows: FlowRows): Row[];
}

type Read<T> = (of: T) => number | undefined;

/** The kind, the name for Prometheus, name and unit for OpenTelemetry; without `flow_control_` and `flow_control.`. */
type Head = `${FigureKind} ${string}`;

function figure(head: Head, help: string, labels: Figure['labels'], rows: Figure['rows'], endsAtZero = false): Figure {
  const [kind, prometheus, openTelemetry, unit = '1'] = head.split(' ') as [FigureKind, ...string[]];
  const names = {
    prometheus: `flow_control_${prometheus}`,
    openTelemetry: openTelemetry && `flow_control.${openTelemetry}`,
  };
  return { kind, help, ...names, unit, labels, endsAtZero, rows };
}

/** Makes figures with a row for each part that has one; `more`: labels of the parts that Prometheus does not have. */
function each<T, L extends keyof RowLabels = never>(
  labels: readonly L[],
  parts: (figures: ControllerFigures) => readonly (T & { readonly [Label in L]: RowLabels[Label] })[],
  more: readonly L[] = [],
) {
  return (head: Head, help: string, read: Read<T>, endsAtZero = false): Figure => {
    const rows: Figure['rows'] = (figures) =>
      parts(figures).flatMap((part): Row[] => {
        const value = read(part);
        const own = (): RowLabels => Object.fromEntries([...labels, ...more].map((label) => [label, part[label]]));
        return value === undefined ? [] : [{ labels: own(), value }];
      });
    return figure(head, help, labels, rows, endsAtZero);
  };
}

const controller = each([], (figures) => [figures]);
const band = each(['priority'], ({ bands }) => bands);
const flow = (head: Head, help: string, rows: Figure['rows'], endsAtZero = true): Figure =>
  figure(head, help, ['fairnessId', 'priority'], rows, endsAtZero);
const group = each(['group'], ({ groups }) => groups);
/** `per`: its span in seconds, as a group may limit the minute and the day. */
const quota = each(
  ['group', 'unit', 'per'],
  ({ quotas }) =>
    distinctQuotas(quotas?.quotas ?? []).map((one) => ({ ...one, per: one.perMs / 1_000, learnt: one.isLearnt })),
  ['learnt'],
);
/** Of every endpoint that a constraint counts. */
const capacity = each(['endpoint', 'dimension'], (figures) => figures.capacity.slice(0, mostQuotas));
const detector = each(['detector', 'stage'], ({ detectors }) =>
  detectors.map((one) => ({ ...one, stage: one.stage ?? '' })),
);
/** By state. `elsewhere` is told where a detector knows of it. */
const session = each(['state'], ({ sessions }) => {
  if (sessions === undefined) return [];
  const { resident, idle, waiting, elsewhere } = sessions;
  const running = resident - idle - (elsewhere ?? 0);
  return Object.entries({ running, idle, elsewhere, waiting }).map(([state, count]) => ({ state, count }));
});
const drop = each(['outcome', 'reason'], ({ stats }) => stats.shadow?.wouldHaveBeenDropped ?? []);

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

/** How full a limit is, in requests and in bytes: of each band, and of all together. */
const utilization = (['requests', 'bytes'] as const).map((resource): readonly [Figure, Figure] => {
  const read = ({ waiting, waitingBytes, limits }: Waiting): number | undefined =>
    resource === 'requests' ? shareOf(waiting, limits.maxRequests) : shareOf(waitingBytes, limits.maxBytes);
  const ofResource = ({ rows, ...rest }: Figure): Figure => ({
    ...rest,
    rows: (...given) => rows(...given).map(({ labels, value }) => ({ labels: { resource, ...labels }, value })),
  });
  const ofBands = band(
    `max capacity_utilization_${resource} capacity.utilization`,
    'What waits in a band as a share of its limit, in requests or bytes; absent without a limit.',
    read,
    true,
  );
  const ofAll = controller(
    `max global_capacity_utilization_${resource} global_capacity.utilization`,
    'What waits as a share of the global limit, in requests or bytes; absent without a limit.',
    ({ stats: { waiting, waitingBytes }, limits }) => read({ waiting, waitingBytes, limits }),
  );
  return [ofResource(ofBands), ofResource(ofAll)];
});

/** Undefined where there is no limit: absent is not empty. A limit of 0 is always full. */
function shareOf(used: number, most: number): number | undefined {
  if (most === Infinity) return undefined;
  return most === 0 ? 1 : used / most;
}

export const figures: readonly Figure[] = [
  flow('sum queue_size queue.size {request}', 'Requests that wait in flow control.', ({ bands }, flows) =>
    flows.waiting(bands, ({ waiting }) => waiting),
  ),
  flow('sum queue_bytes queue.payload By', 'Bytes of the requests that wait in flow control.', ({ bands }, flows) =>
    flows.waiting(bands, ({ waitingBytes }) => waitingBytes),
  ),
  {
    ...controller(
      'min fairness_index fairness.index',
      'The least fairness index of the policies that keep one; 1 is fair. Absent when none does.',
      ({ stats }) => stats.fairnessIndex,
    ),
    prometheus: 'program_aware_jains_fairness_index',
  },
  flow(
    'counter service_cost_total service.cost',
    'Cost of the requests that ended, in the unit of a fairness policy that shares by cost.',
    ({ bands }, flows) => flows.served(bands),
    false,
  ),
  flow(
    'max fairness_counter_lag fairness.counter_lag',
    'Cost that a fairness ID which waits has received beyond those that go next, under policies that share by cost.',
    ({ bands }, flows) => flows.leads(bands),
  ),
  controller(
    'max pool_saturation saturation',
    'Saturation of the pool when it was last read; 1 is full.',
    ({ stats }) => stats.saturation,
  ),
  detector(
    'max detector_saturation detector.saturation',
    'The last reading of each detector that another is made of, by stage where these are judged apart.',
    ({ saturation }) => saturation,
  ),
  ...utilization.map(([ofBands]) => ofBands),
  ...utilization.map(([, ofAll]) => ofAll),
  controller(
    'counter revocations_issued_total evictions {request}',
    'Running requests that were asked to leave for one of higher priority.',
    ({ stats }) => stats.evictedInFlight,
  ),
  controller(
    'sum reclaim_target',
    'Saturation above the ceiling of the waiting band that lacks most. Absent without eviction.',
    ({ stats }) => stats.reclaim?.target,
  ),
  controller(
    'sum pending_reclaim',
    'Saturation that running requests which were asked to leave will free. Absent without eviction.',
    ({ stats }) => stats.reclaim?.pending,
  ),
  band(
    'min band_fairness_index fairness.band_index',
    "Jain's index of received over owed cost of the last five minutes, by band, under policies that share by cost; 1 is fair.",
    (each) => each.service()?.fairnessIndex,
  ),
  quota(
    'max quota_limit quota.limit {unit}',
    'Units that a quota or a budget allows in its span.',
    ({ limit }) => limit,
  ),
  quota(
    'max quota_used quota.used {unit}',
    'Units of a quota that were settled and are not free again.',
    ({ used }) => used,
  ),
  quota(
    'max quota_reserved quota.reserved {unit}',
    'Units of a quota that running requests hold by their estimates.',
    ({ reserved }) => reserved,
  ),
  quota(
    'max quota_reset_seconds quota.reset s',
    'Time until all of a quota is free again, if nothing more is taken.',
    ({ resetsInMs }) => resetsInMs / 1_000,
  ),
  quota(
    'max quota_wait_seconds quota.wait s',
    'Time until a quota has room for one unit; 0 while it has.',
    ({ waitMs }) => waitMs / 1_000,
  ),
  quota('max quota_learnt', '1 for a quota that answers told of, 0 for a configured one.', ({ isLearnt }) =>
    Number(isLearnt),
  ),
  controller(
    'counter quota_refusals_total quota.refusals {response}',
    'Answers of hosted models that put a request off (429, 529).',
    ({ quotas }) => quotas?.refusals,
  ),
  controller(
    'counter quota_unreported_total quota.unreported {request}',
    'Requests under a quota that ended without a report of what they consumed, so that their estimates stand.',
    ({ quotas }) => quotas?.unreported,
  ),
  controller(
    'counter quota_ignored_total quota.ignored {figure}',
    'Figures in reports and headers that cannot be right, and that quotas ignored.',
    ({ quotas }) => quotas && quotas.ignoredReports + quotas.ignoredFigures,
  ),
  capacity(
    'sum capacity_used capacity.used {unit}',
    'What requests hold of an endpoint, in slots, tokens or requests.',
    ({ used }) => used,
  ),
  capacity(
    'max capacity_limit capacity.limit {unit}',
    'What an endpoint has, in slots, tokens or requests.',
    ({ limit }) => limit,
  ),
  session(
    'sum sessions sessions {session}',
    'Sessions that are resident, and new ones that are held back. Absent where no detector limits sessions.',
    ({ count }) => count,
  ),
  controller(
    'sum session_tokens session.tokens {token}',
    'Tokens that resident sessions hold, over all endpoints.',
    ({ sessions }) => sessions?.tokens,
  ),
  controller(
    'counter sessions_expired_total sessions.expired {session}',
    'Sessions that ended because they were inactive for too long.',
    ({ sessions }) => sessions?.expired,
  ),
  controller(
    'counter ignored_reports_total ignored_reports {report}',
    'Reports of usage that went backwards or exceeded 2^53, and that policies which share by cost ignored.',
    ({ stats }) => stats.ignoredReports,
  ),
  controller('sum in_flight_requests in_flight {request}', 'Leases not yet released.', ({ stats }) => stats.inFlight),
  controller('sum in_flight_tokens', 'Tokens booked by leases not yet released.', ({ stats }) => stats.inFlightTokens),
  controller(
    'max oldest_lease_seconds lease.oldest_age s',
    'How long the oldest unreleased lease is held; 0 while nothing runs.',
    ({ stats }) => (stats.oldestLeaseMs ?? 0) / 1_000,
  ),
  controller(
    'counter overdue_leases_total lease.overdue {lease}',
    'Leases that were held longer than maxLeaseMs.',
    ({ stats }) => stats.overdueLeases,
  ),
  controller(
    'counter enqueued_total',
    'Requests handed to flow control, those that still wait included.',
    ({ stats }) => stats.enqueued,
  ),
  controller('sum queue_tokens', 'Estimated tokens of the requests that wait.', ({ waitingTokens }) => waitingTokens),
  band(
    'sum capped_requests capped {request}',
    'Requests that wait because their fairness ID runs as much as it may.',
    ({ waitingAtCap }) => waitingAtCap,
    true,
  ),
  controller(
    'max endpoints',
    'Model servers that can be had; absent for a controller without a pool.',
    ({ pool }) => pool?.available,
  ),
  group(
    'counter group_dispatched_total',
    'Requests that went to a group of endpoints that bands name.',
    ({ dispatched }) => dispatched,
  ),
  group(
    'counter group_overflowed_total',
    'Those of them for which it was not the first group of their band.',
    ({ overflowed }) => overflowed,
  ),
  controller(
    'counter plugin_errors_total plugin_errors {error}',
    'Faults of policies, detectors, pickers and listeners.',
    ({ stats }) => stats.pluginErrors,
  ),
  controller(
    'max shadow shadow',
    '1 in shadow mode: nothing is held or dropped, and every other metric is what would have been. Absent otherwise.',
    ({ stats }) => stats.shadow && 1,
  ),
  controller(
    'counter shadow_passed_total shadow.passed {request}',
    'Requests that shadow mode let through.',
    ({ stats }) => stats.shadow?.passed,
  ),
  controller(
    'counter shadow_would_have_waited_total shadow.would_have_waited {request}',
    'Requests that shadow mode let through and that would have waited, whatever became of them then.',
    ({ stats }) => stats.shadow?.wouldHaveWaited,
  ),
  drop(
    'counter shadow_would_have_been_dropped_total shadow.would_have_been_dropped {request}',
    'Requests that shadow mode let through and that would have been rejected, or evicted while they waited.',
    ({ requests }) => requests,
  ),
  controller(
    'counter shadow_would_have_been_evicted_total shadow.would_have_been_evicted {request}',
    'Running requests that would have been evicted for one of higher priority.',
    ({ stats }) => stats.shadow?.wouldHaveBeenEvicted,
  ),
];
