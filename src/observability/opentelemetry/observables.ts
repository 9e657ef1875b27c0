/** The instruments that are read when somebody collects, and where their figures come from. */
import type { Attributes, Meter, Observable } from '@opentelemetry/api';
import type { ControllerFigures } from '../../index.js';
import type { FigureKind } from '../metrics/catalogue.js';
import * as catalogue from '../metrics/catalogue.js';
import type { FlowRows, RowLabels } from '../metrics/flow-rows.js';
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
  readonly flows: FlowRows;
  bandAttributes(priority: number): Attributes;
}

interface ObservableFigure {
  readonly instrument: Instrument;
  /** True where it has a row for each band or flow, and these come and go. */
  readonly hasRows: boolean;
  make(meter: Meter): Observable;
  /** Rows with the same attributes add up. */
  read(figures: ControllerFigures, readings: Readings): Figure[];
}

const makers = {
  counter: 'createObservableCounter',
  sum: 'createObservableUpDownCounter',
  max: 'createObservableGauge',
  min: 'createObservableGauge',
} as const satisfies Record<FigureKind, keyof Meter>;

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
  return Array.from(byName, ([name, all]): ObservableFigure => {
    const [{ unit, endsAtZero, kind, help: description }] = all as [catalogue.Figure];
    return {
      instrument: { name, description, unit },
      hasRows: endsAtZero,
      make: (meter) => meter[makers[kind]](name, { description, unit }),
      read: (figures, readings) =>
        all
          .flatMap((each) => each.rows(figures, readings.flows))
          .map(({ labels, value }) => [value, attributesOf(labels, readings)]),
    };
  });
}

export const observables: readonly ObservableFigure[] = ofCatalogue();
