/** The instruments that are read when somebody collects, and where their figures come from. */
import type { Attributes, Meter, Observable } from '@opentelemetry/api';
import type { BoundedLabel } from '../../base/bounded-label.js';
import type { ControllerFigures } from '../../index.js';
import type { Described, FigureKind, RowLabels } from '../metrics/catalogue.js';
import * as catalogue from '../metrics/catalogue.js';
import { counterLags, eachLabelledFlow, type WaitingFigures } from '../metrics/labelled-flows.js';
import type { ServiceTotals } from '../metrics/service-totals.js';
import { attributes, type Instrument } from './instruments.js';

export type Figure = readonly [value: number, of: Attributes];

/** A series once reported stays, as 0 when gone: SDKs repeat the last value. Its callers keep the attributes few. */
export class ZeroFilledSeries {
  private readonly known = new Map<string, Attributes>();

  /** The figures, those with the same attributes added up, and 0 for every other row that was ever here. */
  with(figures: readonly Figure[]): Iterable<Figure> {
    const sums = new Map<string, number>();
    for (const [value, of] of figures) {
      const key = Object.values(of).join('\u0000');
      this.known.set(key, of);
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
    return [...this.known].map(([key, of]): Figure => [sums.get(key) ?? 0, of]);
  }
}

/** The attributes that figures are told with. */
export interface Readings {
  readonly constant: Attributes;
  /** Undefined: fairness IDs are not told. */
  readonly fairnessIds: BoundedLabel | undefined;
  readonly services: ServiceTotals;
  bandAttributes(priority: number): Attributes;
  /** Those of the band where fairness IDs are not told. */
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
  const make: ObservableFigure['make'] = (meter) => meter[makers[kind]](name, options);
  return { instrument: { name, ...options }, hasRows: false, make, read };
}

function rows(name: string, unit: string, described: Described, read: Read): ObservableFigure {
  return { ...single(name, unit, described, read), hasRows: true };
}

/** By band; by flow where fairness IDs are told. */
function queue(figure: keyof WaitingFigures): Read {
  return ({ bands }, { fairnessIds, flowAttributes }) => {
    const rows: Figure[] = [];
    for (const band of bands)
      eachLabelledFlow(band, fairnessIds, (label, of) => rows.push([of[figure], flowAttributes(label, band.priority)]));
    return rows;
  };
}

function attributesOf({ priority, ...others }: RowLabels, { constant, bandAttributes }: Readings): Attributes {
  const own = Object.entries(others).map(([label, value]) => [attributes[label as keyof typeof others], value]);
  return { ...(priority === undefined ? constant : bandAttributes(priority)), ...Object.fromEntries(own) };
}

/** One instrument for each name of the catalogue. */
function ofCatalogue(): ObservableFigure[] {
  const byName = new Map<string, catalogue.Figure[]>();
  for (const figure of catalogue.figures)
    if (figure.openTelemetry !== undefined)
      byName.set(figure.openTelemetry, [...(byName.get(figure.openTelemetry) ?? []), figure]);
  return Array.from(byName, ([name, all]) => {
    const [{ unit, endsAtZero, ...described }] = all as [catalogue.Figure];
    const read: Read = (figures, readings) =>
      all.flatMap((each) => each.rows(figures)).map(({ labels, value }) => [value, attributesOf(labels, readings)]);
    return { ...single(name, unit, described, read), hasRows: endsAtZero };
  });
}

export const observables: readonly ObservableFigure[] = [
  rows('flow_control.queue.size', '{request}', catalogue.queueRequests, queue('waiting')),
  rows('flow_control.queue.payload', 'By', catalogue.queueBytes, queue('waitingBytes')),
  single('flow_control.fairness.index', '1', catalogue.fairnessIndex, (figures, { constant }) => {
    const index = catalogue.fairnessIndex.read(figures);
    return index === undefined ? [] : [[index, constant]];
  }),
  // A counter that ended is not reported as 0, because a counter must not fall.
  single('flow_control.service.cost', '1', catalogue.serviceCost, ({ bands }, { services, flowAttributes }) =>
    services.read(bands).map(({ priority, label, value }) => [value, flowAttributes(label, priority)]),
  ),
  rows('flow_control.fairness.counter_lag', '1', catalogue.counterLag, ({ bands }, { fairnessIds, flowAttributes }) =>
    counterLags(bands, fairnessIds).map(({ priority, label, value }) => [value, flowAttributes(label, priority)]),
  ),
  ...ofCatalogue(),
];
