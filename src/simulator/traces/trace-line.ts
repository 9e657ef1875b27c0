/** One line of recorded traffic: what its columns hold, and the request that this makes. */
import { figureColumns, isFigure, type RowFigure, type TextColumn, type TraceColumn } from './trace-formats.js';
import type { TraceRow } from './trace-row.js';

/** No figure and no trace is larger (115 days in ms): a simulation of more would not end, or its clock would stand. */
export const largest = 1e10;
export const upTo = 'from 0 to 1e10';

export class LineFault extends Error {
  readonly expected: string;
  readonly got: string;

  constructor(expected: string, got: unknown) {
    super(expected);
    this.expected = expected;
    this.got = isHole(got) ? 'a hole' : JSON.stringify(got);
  }
}

export class TraceLine {
  readonly figures: { [Name in RowFigure]?: number } = {};
  readonly texts: { [Name in TextColumn]?: unknown } = {};

  /** @throws LineFault */
  set(column: TraceColumn, value: unknown): void {
    if (column === 'ignored' || isHole(value)) return;
    if (!isFigure(column)) {
      this.texts[column] = value;
      return;
    }
    const { of, factor, what } = figureColumns[column];
    const figure = numberOf(value) * factor;
    if (!(figure >= 0 && figure <= largest)) throw new LineFault(`a number ${upTo} of ${what}`, value);
    this.figures[of] = figure;
  }

  /** False for what was rejected, evicted or lost. */
  get hasAnswer(): boolean {
    const { status } = this.texts;
    return this.figures.outputTokens !== 0 && !(numberOf(status) >= 400);
  }

  /** The request. Its arrival is from the beginning of the trace, or an instant. @throws LineFault */
  toRow(): TraceRow {
    const { tenant, priority, server } = this.texts;
    const times = this.times();
    if (priority !== undefined && !Number.isSafeInteger(numberOf(priority)))
      throw new LineFault('an integer as priority', priority);
    const { promptTokens, outputTokens, serviceMs } = this.figures;
    if ((promptTokens ?? outputTokens ?? serviceMs ?? times.totalMs) === undefined)
      throw new LineFault('tokens, or a service time', undefined);
    return {
      ...this.figures,
      ...times,
      tenant: tenant === undefined ? undefined : String(tenant),
      priority: priority === undefined ? undefined : Number(priority),
      server: server === undefined ? undefined : String(server),
    };
  }

  private times(): Pick<TraceRow, 'arrivalMs' | 'ttftMs' | 'totalMs'> {
    const { ttftMs, totalMs } = this.figures;
    const endedAtMs = this.instant('endedAt');
    const arrivedAtMs =
      this.instant('arrivedAt') ?? (endedAtMs === undefined || totalMs === undefined ? undefined : endedAtMs - totalMs);
    const sinceArrival = (atMs: number | undefined, what: string): number | undefined => {
      if (atMs === undefined || arrivedAtMs === undefined) return undefined;
      const sinceMs = atMs - arrivedAtMs;
      if (!(sinceMs >= 0 && sinceMs <= largest)) throw new LineFault(`${what} after the arrival`, `${sinceMs} ms`);
      return sinceMs;
    };
    const times = {
      ttftMs: ttftMs ?? sinceArrival(this.instant('firstTokenAt'), 'a first token'),
      totalMs: totalMs ?? sinceArrival(endedAtMs, 'an end'),
    };
    const { arrivalMs, arrivalSeconds } = this.texts;
    const given = arrivalMs ?? arrivalSeconds;
    if (given !== undefined) {
      const givenMs = numberOf(given) * (arrivalMs === undefined ? 1000 : 1);
      if (!(givenMs >= 0 && givenMs <= largest)) throw new LineFault(`a time ${upTo} ms`, given);
      return { arrivalMs: givenMs, ...times };
    }
    if (arrivedAtMs !== undefined) return { arrivalMs: arrivedAtMs, ...times };
    const orTotal = endedAtMs === undefined ? '' : ', or a total time beside the end';
    throw new LineFault(`an arrival time${orTotal}`, undefined);
  }

  private instant(column: 'arrivedAt' | 'firstTokenAt' | 'endedAt'): number | undefined {
    const given = this.texts[column];
    if (given === undefined) return undefined;
    const instantMs = instantOf(String(given));
    if (Number.isNaN(instantMs)) throw new LineFault('an instant such as 2023-11-16 18:17:03.979', given);
    return instantMs;
  }
}

/** Web servers write `-` where there is nothing. */
function isHole(value: unknown): boolean {
  return value === undefined || value === null || value === '' || value === '-';
}

/** NaN for what is no number, such as `true`, a list and blanks. */
function numberOf(value: unknown): number {
  if (typeof value === 'string' && value.trim() !== '') return Number(value);
  return typeof value === 'number' ? value : NaN;
}

/** A number below this is seconds since 1970 and not milliseconds: 1973, or the year 5138. */
const firstMilliseconds = 1e11;

/** Milliseconds since 1970, with the fraction that `Date` would cut off. Instants without a zone are taken as UTC. */
function instantOf(text: string): number {
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) < firstMilliseconds ? Number(text) * 1000 : Number(text);
  const [, day = '', time = '', fraction = '0', sign = '', hours = '00', minutes = '00'] =
    /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d+))?(?:Z| ?UTC|([+-])(\d\d):?(\d\d)?)?$/.exec(text.trim()) ?? [];
  const zone = sign === '' ? 'Z' : `${sign}${hours}:${minutes}`;
  return day === '' ? NaN : Date.parse(`${day}T${time}${zone}`) + Number(`0.${fraction}`) * 1000;
}
