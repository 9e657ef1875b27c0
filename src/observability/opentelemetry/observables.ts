/** The instruments that are read when somebody collects, and where their figures come from. */
import type { Attributes, Meter, Observable } from '@opentelemetry/api';
import type { BoundedLabel } from '../../base/bounded-label.js';
import type { ControllerFigures, QuotaFigure } from '../../index.js';
import type { Described, FigureKind, FigureOf } from '../metrics/catalogue.js';
import * as catalogue from '../metrics/catalogue.js';
import { distinctQuotas } from '../metrics/distinct-quotas.js';
import { type BandFigures, eachLabelledFlow, type WaitingFigures } from '../metrics/labelled-flows.js';
import type { ServiceTotals } from '../metrics/service-totals.js';
import { utilization } from '../metrics/utilization.js';
import { attributes, type Instrument } from './instruments.js';
import type { Figure } from './zero-filled-series.js';

/** The attributes that figures are told with. */
export interface Readings {
  readonly constant: Attributes;
  /** Undefined: fairness IDs are not told. */
  readonly fairnessIds: BoundedLabel | undefined;
  readonly services: ServiceTotals;
  bandAttributes(priority: number): Attributes;
  flowAttributes(fairnessId: string, priority: number): Attributes;
}

interface ObservableFigure {
  readonly instrument: Instrument;
  /** True where it has a row for each band or flow, and these come and go. */
  readonly hasRows: boolean;
  make(meter: Meter): Observable;
  /** Rows with the same attributes add up. */
  read(figures: ControllerFigures, readings: Readings): Figure[];
}

type Read = ObservableFigure['read'];

const makers = {
  counter: 'createObservableCounter',
  sum: 'createObservableUpDownCounter',
  max: 'createObservableGauge',
  min: 'createObservableGauge',
} as const satisfies Record<FigureKind, keyof Meter>;

function single(name: string, unit: string, { kind, help }: Described, read: Read): ObservableFigure {
  const options = { description: help, unit };
  return {
    instrument: { name, ...options },
    hasRows: false,
    make: (meter) => meter[makers[kind]](name, options),
    read,
  };
}

function rows(name: string, unit: string, described: Described, read: Read): ObservableFigure {
  return { ...single(name, unit, described, read), hasRows: true };
}

/** Without attributes of its own. */
function controller(name: string, unit: string, figure: FigureOf<ControllerFigures>): ObservableFigure {
  return single(name, unit, figure, (figures, { constant }) => one(constant, figure.read(figures)));
}

function one(of: Attributes, value: number | undefined): Figure[] {
  return value === undefined ? [] : [[value, of]];
}

/** One row for each band that has the figure. */
function bands(figure: FigureOf<BandFigures>): Read {
  return ({ bands }, { bandAttributes }) =>
    bands.flatMap((band) => one(bandAttributes(band.priority), figure.read(band)));
}

/** By band; by flow where fairness IDs are told. */
function queue(figureOf: (of: WaitingFigures) => number): Read {
  return ({ bands }, { fairnessIds, bandAttributes, flowAttributes }) =>
    bands.flatMap((band): Figure[] => {
      if (fairnessIds === undefined) return [[figureOf(band), bandAttributes(band.priority)]];
      const rows: Figure[] = [];
      eachLabelledFlow(band, fairnessIds, (label, of) =>
        rows.push([figureOf(of), flowAttributes(label, band.priority)]),
      );
      return rows;
    });
}

/** Requests and bytes of one scope, where they are limited. */
function shares({ waiting, waitingBytes }: WaitingFigures, limits: BandFigures['limits'], of: Attributes): Figure[] {
  const both = {
    requests: utilization(waiting, limits.maxRequests),
    bytes: utilization(waitingBytes, limits.maxBytes),
  };
  return Object.entries(both).flatMap(([resource, share]): Figure[] =>
    share === undefined ? [] : [[share, { ...of, [attributes.resource]: resource }]],
  );
}

/** One row for each group, unit and span. */
function quota(name: string, unit: string, figure: FigureOf<QuotaFigure>): ObservableFigure {
  return single(name, unit, figure, ({ quotas }, { constant }) =>
    distinctQuotas(quotas?.quotas ?? []).flatMap((each) => {
      const { group, unit, perMs, isLearnt } = each;
      const of = {
        ...constant,
        [attributes.quotaGroup]: group,
        [attributes.quotaUnit]: unit,
        [attributes.quotaPer]: perMs / 1_000,
        [attributes.quotaLearnt]: isLearnt,
      };
      return one(of, figure.read(each));
    }),
  );
}

export const observables: readonly ObservableFigure[] = [
  rows(
    'flow_control.queue.size',
    '{request}',
    catalogue.queueRequests,
    queue(({ waiting }) => waiting),
  ),
  rows(
    'flow_control.queue.payload',
    'By',
    catalogue.queueBytes,
    queue(({ waitingBytes }) => waitingBytes),
  ),
  rows(
    'flow_control.capacity.utilization',
    '1',
    { kind: 'max', help: 'What waits in a band as a share of its limit; absent without a limit.' },
    ({ bands }, { bandAttributes }) =>
      bands.flatMap((band) => shares(band, band.limits, bandAttributes(band.priority))),
  ),
  single(
    'flow_control.global_capacity.utilization',
    '1',
    { kind: 'max', help: 'What waits as a share of the global limit; absent without a limit.' },
    ({ stats, limits }, { constant }) => shares(stats, limits, constant),
  ),
  controller('flow_control.saturation', '1', catalogue.saturation),
  controller('flow_control.fairness.index', '1', catalogue.fairnessIndex),
  // A counter that ended is not reported as 0, because a counter must not fall.
  single(
    'flow_control.service.cost',
    '1',
    catalogue.serviceCost,
    ({ bands }, { services, fairnessIds, bandAttributes, flowAttributes }) =>
      services
        .read(bands)
        .map(
          ({ priority, label, value }): Figure => [
            value,
            fairnessIds === undefined ? bandAttributes(priority) : flowAttributes(label, priority),
          ],
        ),
  ),
  rows('flow_control.fairness.counter_lag', '1', catalogue.counterLag, ({ bands }, { fairnessIds, flowAttributes }) => {
    if (fairnessIds === undefined) return [];
    const lags: Figure[] = [];
    for (const band of bands) {
      if (!band.keepsAccount) continue;
      eachLabelledFlow(band, fairnessIds, (label) => {
        const lag = band.leadOf(label);
        if (lag !== undefined) lags.push([lag, flowAttributes(label, band.priority)]);
      });
    }
    return lags;
  }),
  single('flow_control.fairness.band_index', '1', catalogue.bandFairnessIndex, bands(catalogue.bandFairnessIndex)),
  quota('flow_control.quota.limit', '{unit}', catalogue.quotaLimit),
  quota('flow_control.quota.used', '{unit}', catalogue.quotaUsed),
  quota('flow_control.quota.reserved', '{unit}', catalogue.quotaReserved),
  quota('flow_control.quota.reset', 's', catalogue.quotaReset),
  quota('flow_control.quota.wait', 's', catalogue.quotaWait),
  controller('flow_control.quota.refusals', '{response}', catalogue.quotaRefusals),
  controller('flow_control.quota.unreported', '{request}', catalogue.quotaUnreported),
  controller('flow_control.quota.ignored', '{figure}', catalogue.quotaIgnored),
  single(
    'flow_control.sessions',
    '{session}',
    {
      kind: 'sum',
      help: 'Sessions that are resident, and new ones that are held back; absent where no detector limits sessions.',
    },
    (figures, { constant }) =>
      catalogue
        .sessionStates(figures)
        .map(([state, value]): Figure => [value, { ...constant, [attributes.sessionState]: state }]),
  ),
  controller('flow_control.session.tokens', '{token}', catalogue.sessionTokens),
  controller('flow_control.sessions.expired', '{session}', catalogue.sessionsExpired),
  rows('flow_control.capped', '{request}', catalogue.cappedRequests, bands(catalogue.cappedRequests)),
  controller('flow_control.ignored_reports', '{report}', catalogue.ignoredReports),
  controller('flow_control.in_flight', '{request}', catalogue.inFlight),
  controller('flow_control.lease.oldest_age', 's', catalogue.oldestLease),
  controller('flow_control.lease.overdue', '{lease}', catalogue.overdueLeases),
  controller('flow_control.evictions', '{request}', catalogue.evictions),
  controller('flow_control.plugin_errors', '{error}', catalogue.pluginErrors),
  controller('flow_control.shadow', '1', catalogue.shadow),
  controller('flow_control.shadow.passed', '{request}', catalogue.shadowPassed),
  controller('flow_control.shadow.would_have_waited', '{request}', catalogue.shadowWaited),
  single(
    'flow_control.shadow.would_have_been_dropped',
    '{request}',
    catalogue.shadowDropped,
    ({ stats }, { constant }) =>
      (stats.shadow?.wouldHaveBeenDropped ?? []).map(
        ({ outcome, reason, requests }): Figure => [
          requests,
          { ...constant, [attributes.outcome]: outcome, [attributes.errorType]: reason },
        ],
      ),
  ),
  controller('flow_control.shadow.would_have_been_evicted', '{request}', catalogue.shadowEvicted),
];
