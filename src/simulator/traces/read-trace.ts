/**
 * Reads recorded traffic: JSONL, or CSV with a head. Every bad line is named; it is left out only where the reader is
 * told to.
 */
import { type ConfigIssue, FlowConfigError } from '../../index.js';
import { splitCsvLine } from './csv.js';
import { formatOf, plainName, type TraceColumn, type TraceFormat } from './trace-formats.js';
import type { TraceRow } from './trace-row.js';

export interface ReadTraceOptions {
  /** Leave out lines that are wrong, and count them. @default false: they are errors */
  readonly skipBadLines?: boolean | undefined;
}

export interface ReadTrace {
  readonly rows: readonly TraceRow[];
  /** The format that the columns are of. */
  readonly format: string;
  /** Lines that were left out because they are wrong. */
  readonly skippedLines: number;
  readonly warnings: readonly string[];
}

/** More are counted, and not told one by one. */
const mostIssues = 20;

/** A line as columns and values; undefined when it cannot be read. */
type Line = Readonly<Record<string, unknown>>;

/**
 * Recorded requests, in the order of their arrival. Column names of the Azure LLM inference trace, BurstGPT, Mooncake
 * and of a gateway's access log are understood, and `arrivalMs` or `arrival` (seconds), `tenant`, `priority`,
 * `promptTokens`, `outputTokens`, `serviceMs`.
 * @throws FlowConfigError that names the lines
 */
export function readTrace(text: string, { skipBadLines = false }: ReadTraceOptions = {}): ReadTrace {
  const reading = new TraceReading(text.replace(/^\uFEFF/, ''));
  const { issues } = reading;
  if (issues.length > 0 && !(skipBadLines && reading.rows.length > 0)) {
    const more = reading.badLines - mostIssues;
    if (more > 0) issues.push({ path: 'more', expected: 'right lines', got: `${more} more that are wrong` });
    throw new FlowConfigError('trace', issues);
  }
  const warnings = skipBadLines
    ? issues.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`)
    : [];
  return { rows: reading.rows, format: reading.formatName, skippedLines: reading.badLines, warnings };
}

class TraceReading {
  readonly rows: TraceRow[] = [];
  readonly issues: ConfigIssue[] = [];
  badLines = 0;
  private format: TraceFormat | undefined = undefined;
  private readonly unknown = new Set<string>();
  /** Figures that every line must have, because the file has a column for them. */
  private readonly required = new Set<TraceColumn>();
  private beginsAtMs: number | undefined = undefined;
  private lastMs = Number.NEGATIVE_INFINITY;

  constructor(text: string) {
    const lines = text.split(/\r?\n/);
    const isJson = /^\s*\{/.test(text);
    const head = isJson ? undefined : splitCsvLine(lines[0] ?? '');
    if (head === undefined) for (const line of lines) this.require(Object.keys(jsonLine(line) ?? {}));
    else this.readHead(head);
    for (const [index, line] of lines.entries()) {
      if (line.trim() === '' || (index === 0 && !isJson)) continue;
      this.readLine(isJson ? jsonLine(line) : csvLine(line, head ?? []), index + 1);
    }
    if (this.format?.isByEnd === true) this.fromTheFirst();
    if (this.rows.length === 0 && this.issues.length === 0) {
      this.issues.push({ path: 'line 1', expected: 'a request for each line', got: 'none' });
    }
  }

  get formatName(): string {
    return this.format?.name ?? '';
  }

  private readHead(head: readonly string[]): void {
    this.format = formatOf(head);
    this.require(head);
    for (const name of head) if (!this.isKnown(name)) this.noteUnknown(name, 1);
  }

  private require(names: readonly string[]): void {
    if (names.length > 0) this.format ??= formatOf(names);
    if (this.format === undefined || this.format.isByEnd === true) return;
    for (const name of names) {
      const column = this.format.columns[plainName(name)];
      if (column === 'promptTokens' || column === 'outputTokens' || column === 'serviceMs') this.required.add(column);
    }
  }

  private isKnown(name: string): boolean {
    return this.format?.allowsOthers === true || this.format?.columns[plainName(name)] !== undefined;
  }

  private readLine(line: Line | undefined, number: number): void {
    if (line === undefined) {
      this.wrong(number, 'an object of JSON, or as many columns as the head has', 'something else');
      return;
    }
    this.format ??= formatOf(Object.keys(line));
    const { columns, only } = this.format;
    const values: Partial<Record<TraceColumn, unknown>> = {};
    for (const [name, value] of Object.entries(line)) {
      const column = columns[plainName(name)];
      if (column !== undefined) values[column] = value;
      else if (!this.isKnown(name)) this.noteUnknown(name, number);
    }
    if (only !== undefined && plainLine(line)[only[0]] !== only[1]) return;
    this.add(values, number);
  }

  private add(values: Partial<Record<TraceColumn, unknown>>, number: number): void {
    const totalMs = figure(values.totalMs);
    const arrivalMs = this.arrivalOf(values, totalMs ?? 0, number);
    const promptTokens = figure(values.promptTokens);
    const outputTokens = figure(values.outputTokens);
    const serviceMs = figure(values.serviceMs);
    const ttftMs = figure(values.ttftMs);
    const noFigure = (
      [
        ['prompt tokens', promptTokens, 'promptTokens'],
        ['output tokens', outputTokens, 'outputTokens'],
        ['service time', serviceMs, 'serviceMs'],
        ['total time', totalMs, 'totalMs'],
        ['time to the first token', ttftMs, 'ttftMs'],
      ] as const
    ).find(([, read, column]) => read === undefined && (this.required.has(column) || !isHole(values[column])));
    if (arrivalMs === undefined) return;
    if (noFigure !== undefined) {
      const [what, , column] = noFigure;
      this.wrong(
        number,
        `a number from 0 up of ${what}`,
        isHole(values[column]) ? 'a hole' : JSON.stringify(values[column]),
      );
      return;
    }
    if (!isHole(values.priority) && !Number.isSafeInteger(Number(values.priority))) {
      this.wrong(number, 'an integer as priority', JSON.stringify(values.priority));
      return;
    }
    if (
      promptTokens === undefined &&
      outputTokens === undefined &&
      serviceMs === undefined &&
      this.format?.isByEnd !== true
    ) {
      this.wrong(number, 'tokens, or a service time', 'a hole');
      return;
    }
    const isCutShort = this.format?.isByEnd === true && (outputTokens === undefined || outputTokens === 0);
    if (isCutShort) return;
    const { tenant, priority } = values;
    this.lastMs = arrivalMs;
    this.rows.push({
      arrivalMs,
      ...(!isHole(tenant) && { tenant: String(tenant) }),
      ...(!isHole(priority) && { priority: Number(priority) }),
      ...(promptTokens !== undefined && { promptTokens }),
      ...(outputTokens !== undefined && { outputTokens }),
      ...(serviceMs !== undefined && { serviceMs }),
      ...(ttftMs !== undefined && { ttftMs }),
      ...(totalMs !== undefined && { totalMs }),
    });
  }

  /** Undefined, and noted, when it is wrong. */
  private arrivalOf(
    values: Partial<Record<TraceColumn, unknown>>,
    totalMs: number,
    number: number,
  ): number | undefined {
    const given = values.arrivalMs ?? values.arrivalSeconds ?? values.arrivalDate ?? values.endDate;
    if (values.arrivalDate !== undefined || values.endDate !== undefined) {
      const instantMs = instant(String(given));
      if (Number.isNaN(instantMs))
        return this.wrong(number, 'an instant such as 2023-11-16 18:17:03.979', JSON.stringify(given));
      if (this.format?.isByEnd === true) return instantMs - totalMs;
      this.beginsAtMs ??= instantMs;
      return this.inOrder(instantMs - this.beginsAtMs, given, number);
    }
    if (isHole(given)) return this.wrong(number, 'an arrival time', 'a hole');
    const arrivalMs = Number(given) * (values.arrivalMs === undefined ? 1000 : 1);
    if (!(arrivalMs >= 0 && arrivalMs < Number.POSITIVE_INFINITY))
      return this.wrong(number, 'a time from 0 up', JSON.stringify(given));
    return this.inOrder(arrivalMs, given, number);
  }

  private inOrder(arrivalMs: number, given: unknown, number: number): number | undefined {
    if (arrivalMs >= this.lastMs) return arrivalMs;
    return this.wrong(number, 'a time that is not before that of the line before', JSON.stringify(given));
  }

  /** Sorts lines that stand in the order of their ends by their arrivals, from the first arrival on. */
  private fromTheFirst(): void {
    const inOrder = this.rows.splice(0).sort((a, b) => a.arrivalMs - b.arrivalMs);
    const first = inOrder[0]?.arrivalMs ?? 0;
    for (const row of inOrder) this.rows.push({ ...row, arrivalMs: row.arrivalMs - first });
  }

  private noteUnknown(name: string, number: number): void {
    if (this.unknown.has(name)) return;
    this.unknown.add(name);
    const known = this.format?.spelled ?? [];
    const place = {
      path: `line ${number}`,
      expected: `one of the columns ${known.join(', ')}`,
      got: JSON.stringify(name),
    };
    this.issues.push(place);
  }

  private wrong(number: number, expected: string, got: string): undefined {
    this.badLines++;
    if (this.badLines <= mostIssues) this.issues.push({ path: `line ${number}`, expected, got });
    return undefined;
  }
}

function jsonLine(line: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Line) : undefined;
  } catch {
    return undefined;
  }
}

function csvLine(line: string, head: readonly string[]): Line | undefined {
  const cells = splitCsvLine(line);
  return cells.length === head.length ? Object.fromEntries(head.map((name, index) => [name, cells[index]])) : undefined;
}

function plainLine(line: Line): Line {
  return Object.fromEntries(Object.entries(line).map(([name, value]) => [plainName(name), value]));
}

function isHole(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

/** A number from 0 up; undefined for anything else. */
function figure(value: unknown): number | undefined {
  if (isHole(value)) return undefined;
  const number = Number(value);
  return number >= 0 && number < Number.POSITIVE_INFINITY ? number : undefined;
}

/** Milliseconds, with the fraction that `Date` would cut off. Instants without a zone are taken as UTC. */
function instant(text: string): number {
  const [, day = '', time = '', fraction = '', zone = ''] =
    /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d)?$/.exec(text.trim()) ?? [];
  return day === ''
    ? Number.NaN
    : Date.parse(`${day}T${time}${zone === '' ? 'Z' : zone}`) + Number(`0.${fraction === '' ? '0' : fraction}`) * 1000;
}
