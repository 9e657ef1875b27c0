/** The instruments that are read when somebody collects, and where their figures come from. */
import type { Attributes, Meter, Observable } from '@opentelemetry/api';
import type { BoundedLabel } from '../../base/bounded-label.js';
import type { ControllerFigures, QuotaFigure } from '../../index.js';
import { distinctQuotas } from '../metrics/distinct-quotas.js';
import { type BandFigures, eachLabelledFlow, type WaitingFigures } from '../metrics/labelled-flows.js';
import type { ServiceTotals } from '../metrics/service-totals.js';
import { utilization } from '../metrics/utilization.js';
import * as instruments from './instruments.js';
import type { Figure } from './zero-filled-series.js';

const { attributes } = instruments;

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
  /** True where it has a row for each band or flow, and these come and go. */
  readonly hasRows: boolean;
  make(meter: Meter): Observable;
  /** Rows with the same attributes add up. */
  read(figures: ControllerFigures, readings: Readings): Figure[];
}

type Kind = 'createObservableGauge' | 'createObservableCounter' | 'createObservableUpDownCounter';
type Read = ObservableFigure['read'];

function single(kind: Kind, { name, ...options }: instruments.Instrument, read: Read): ObservableFigure {
  return { hasRows: false, make: (meter) => meter[kind](name, options), read };
}

function rows(kind: Kind, { name, ...options }: instruments.Instrument, read: Read): ObservableFigure {
  return { hasRows: true, make: (meter) => meter[kind](name, options), read };
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
function quota(figureOf: (quota: QuotaFigure) => number): Read {
  return ({ quotas }, { constant }) =>
    distinctQuotas(quotas?.quotas ?? []).map((each): Figure => {
      const { quotaGroup, quotaUnit, quotaPer, quotaLearnt } = attributes;
      const { group, unit, perMs, isLearnt } = each;
      const of = {
        ...constant,
        [quotaGroup]: group,
        [quotaUnit]: unit,
        [quotaPer]: perMs / 1_000,
        [quotaLearnt]: isLearnt,
      };
      return [figureOf(each), of];
    });
}

function count(figureOf: (figures: ControllerFigures) => number | undefined): Read {
  return (figures, { constant }) => {
    const value = figureOf(figures);
    return value === undefined ? [] : [[value, constant]];
  };
}

function total(figureOf: (stats: ControllerFigures['stats']) => number | undefined): Read {
  return count(({ stats }) => figureOf(stats));
}

const gauge = 'createObservableGauge';
const counter = 'createObservableCounter';
const upDownCounter = 'createObservableUpDownCounter';

export const observables: readonly ObservableFigure[] = [
  rows(
    upDownCounter,
    instruments.queueSize,
    queue(({ waiting }) => waiting),
  ),
  rows(
    upDownCounter,
    instruments.queuePayload,
    queue(({ waitingBytes }) => waitingBytes),
  ),
  rows(gauge, instruments.capacityUtilization, ({ bands }, { bandAttributes }) =>
    bands.flatMap((band) => shares(band, band.limits, bandAttributes(band.priority))),
  ),
  single(gauge, instruments.globalCapacityUtilization, ({ stats, limits }, { constant }) =>
    shares(stats, limits, constant),
  ),
  single(
    gauge,
    instruments.saturation,
    total(({ saturation }) => saturation),
  ),
  single(
    gauge,
    instruments.fairnessIndex,
    total(({ fairnessIndex }) => fairnessIndex),
  ),
  // A counter that ended is not reported as 0, because a counter must not fall.
  single(counter, instruments.serviceCost, ({ bands }, { services, fairnessIds, bandAttributes, flowAttributes }) =>
    services
      .read(bands)
      .map(
        ({ priority, label, value }): Figure => [
          value,
          fairnessIds === undefined ? bandAttributes(priority) : flowAttributes(label, priority),
        ],
      ),
  ),
  rows(gauge, instruments.counterLag, ({ bands }, { fairnessIds, flowAttributes }) => {
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
  single(gauge, instruments.bandFairnessIndex, ({ bands }, { bandAttributes }) =>
    bands.flatMap((band): Figure[] => {
      const index = band.service()?.fairnessIndex;
      return index === undefined ? [] : [[index, bandAttributes(band.priority)]];
    }),
  ),
  single(
    gauge,
    instruments.quotaLimit,
    quota(({ limit }) => limit),
  ),
  single(
    gauge,
    instruments.quotaUsed,
    quota(({ used }) => used),
  ),
  single(
    gauge,
    instruments.quotaReserved,
    quota(({ reserved }) => reserved),
  ),
  single(
    gauge,
    instruments.quotaReset,
    quota(({ resetsInMs }) => resetsInMs / 1_000),
  ),
  single(
    gauge,
    instruments.quotaWait,
    quota(({ waitMs }) => waitMs / 1_000),
  ),
  single(
    counter,
    instruments.quotaRefusals,
    count(({ quotas }) => quotas?.refusals),
  ),
  single(
    counter,
    instruments.quotaUnreported,
    count(({ quotas }) => quotas?.unreported),
  ),
  single(
    counter,
    instruments.quotaIgnored,
    count(({ quotas }) => quotas && quotas.ignoredReports + quotas.ignoredFigures),
  ),
  single(upDownCounter, instruments.sessions, ({ sessions }, { constant }) => {
    if (sessions === undefined) return [];
    const { resident, idle, waiting, elsewhere } = sessions;
    const here = resident - idle - (elsewhere ?? 0);
    const states = Object.entries({ running: here, idle, waiting, ...(elsewhere !== undefined && { elsewhere }) });
    return states.map(([state, value]): Figure => [value, { ...constant, [attributes.sessionState]: state }]);
  }),
  single(
    upDownCounter,
    instruments.sessionTokens,
    count(({ sessions }) => sessions?.tokens),
  ),
  single(
    counter,
    instruments.sessionsExpired,
    count(({ sessions }) => sessions?.expired),
  ),
  rows(upDownCounter, instruments.cappedRequests, ({ bands }, { bandAttributes }) =>
    bands.flatMap(({ priority, waitingAtCap }): Figure[] =>
      waitingAtCap === undefined ? [] : [[waitingAtCap, bandAttributes(priority)]],
    ),
  ),
  single(
    counter,
    instruments.ignoredReports,
    total(({ ignoredReports }) => ignoredReports),
  ),
  single(
    upDownCounter,
    instruments.inFlight,
    total(({ inFlight }) => inFlight),
  ),
  single(
    gauge,
    instruments.oldestLease,
    total(({ oldestLeaseMs = 0 }) => oldestLeaseMs / 1_000),
  ),
  single(
    counter,
    instruments.overdueLeases,
    total(({ overdueLeases }) => overdueLeases),
  ),
  single(
    counter,
    instruments.evictions,
    total(({ evictedInFlight }) => evictedInFlight),
  ),
  single(
    counter,
    instruments.pluginErrors,
    total(({ pluginErrors }) => pluginErrors),
  ),
  single(
    gauge,
    instruments.shadow,
    total(({ shadow }) => shadow && 1),
  ),
  single(
    counter,
    instruments.shadowPassed,
    total(({ shadow }) => shadow?.passed),
  ),
  single(
    counter,
    instruments.shadowWaited,
    total(({ shadow }) => shadow?.wouldHaveWaited),
  ),
  single(counter, instruments.shadowDropped, ({ stats }, { constant }) =>
    (stats.shadow?.wouldHaveBeenDropped ?? []).map(
      ({ outcome, reason, requests }): Figure => [
        requests,
        { ...constant, [attributes.outcome]: outcome, [attributes.errorType]: reason },
      ],
    ),
  ),
  single(
    counter,
    instruments.shadowEvicted,
    total(({ shadow }) => shadow?.wouldHaveBeenEvicted),
  ),
];
