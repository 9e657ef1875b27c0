/** Reads recorded traffic: JSONL, or CSV with a head. Every bad line is named, and left out only on demand. */
import { didYouMean } from '../../base/faults/did-you-mean.js';
import { valueAt } from '../../base/schema/path.js';
import * as s from '../../base/schema/schema.js';
import { fieldsOf, parseJson } from '../../base/stream/content-pieces.js';
import { type ConfigIssue, FlowConfigError } from '../../index.js';
import { anyText, checkArguments } from '../schemas.js';
import type { RowFigure, TraceColumn, TraceFormat } from './trace-formats.js';
import { figureColumns, formatOf, isFigure, mappedFormat, plainName } from './trace-formats.js';
import { LineFault, largest, TraceLine, upTo } from './trace-line.js';
import type { TraceRow } from './trace-row.js';

export interface ReadTraceOptions {
  /** Leave out lines that are wrong, and count them. @default false: they are errors */
  readonly skipBadLines?: boolean | undefined;
  /**
   * Names of the log's columns, and ours for them: `{ request_time: 'totalSeconds' }`. A column within an object of
   * JSON is `usage.prompt_tokens`. @default the format is told by the names
   */
  readonly columns?: Readonly<Record<string, string>> | undefined;
}

export interface ReadTrace {
  readonly rows: readonly TraceRow[];
  /** The format that the columns are of. */
  readonly format: string;
  /** Lines that were left out because they are wrong. */
  readonly skippedLines: number;
  /** Requests of a log that were left out because they got no answer. */
  readonly unanswered: number;
  readonly warnings: readonly string[];
}

/** More are counted, and not told one by one. */
const mostIssues = 20;
/** A figure that one line has must be in all lines; logs apart. */
const figuresOfAll: readonly RowFigure[] = ['promptTokens', 'outputTokens', 'serviceMs'];

const ofOptions = s.object({
  skipBadLines: s.optional(s.flag()),
  columns: s.optional(s.record(s.text('a name of ours'))),
} satisfies Record<keyof ReadTraceOptions, unknown>);

/**
 * Recorded requests, in the order of their arrival. Column names of the Azure LLM inference trace, BurstGPT, Mooncake
 * and of a gateway's access log are understood, and our own: `arrivalMs`, `arrival` (seconds) or `arrivedAt`, `tenant`,
 * `priority`, `promptTokens`, `outputTokens`, `serviceMs`. O(n log n). @throws FlowConfigError that names the lines
 */
export function readTrace(text: string, options: ReadTraceOptions = {}): ReadTrace {
  checkArguments('readTrace', { text, options }, { text: anyText, options: ofOptions });
  const { skipBadLines = false, columns } = options;
  const reading = new TraceReading(columns);
  reading.read(text.replace(/^\uFEFF/, ''));
  const { issues, rows, unanswered } = reading;
  if (issues.length > 0 && !(skipBadLines && rows.length > 0)) {
    const more = reading.badLines - mostIssues;
    if (more > 0) issues.push({ path: 'more', expected: 'right lines', got: `${more} more that are wrong` });
    throw new FlowConfigError('trace', issues);
  }
  const told = skipBadLines ? issues : [];
  const warnings = told.map(({ path, expected, got }) => `${path}: expected ${expected}; got ${got}`);
  return { rows, format: reading.format?.name ?? '', skippedLines: reading.badLines, unanswered, warnings };
}

/** What was left out, a sentence for each reason. */
export function leftOut({ rows, skippedLines, unanswered, warnings }: ReadTrace): string[] {
  const notes: string[] = [];
  if (warnings.length > 0) {
    const count = skippedLines === 1 ? '1 line was' : `${skippedLines} lines were`;
    const further = warnings.length > 1 ? `; and ${warnings.length - 1} more` : '';
    notes.push(`${count} left out. Its faults: ${warnings[0]}${further}`);
  }
  if (unanswered > 0)
    notes.push(`${unanswered} of ${unanswered + rows.length} requests got no answer and are left out`);
  return notes;
}

/** Of one line: names as the file spells them, and values. */
type Cells = readonly (readonly [name: string, value: unknown])[];

class TraceReading {
  rows: TraceRow[] = [];
  readonly issues: ConfigIssue[] = [];
  badLines = 0;
  unanswered = 0;
  private readonly mapped: Readonly<Record<string, string>>;
  /** Those of them that may lie within objects. */
  private readonly paths: readonly string[];
  format: TraceFormat | undefined;
  /** By the names as the file spells them. */
  private readonly columns = new Map<string, TraceColumn | undefined>();
  /** The line of each row. */
  private readonly lines: number[] = [];
  private beginsAtMs: number | undefined = undefined;
  private lastMs = -Infinity;

  constructor(mapped: Readonly<Record<string, string>> | undefined) {
    this.mapped = mapped ?? {};
    this.paths = Object.keys(this.mapped).filter((name) => name.includes('.'));
    this.format = mapped === undefined ? undefined : mappedFormat(mapped);
  }

  read(text: string): void {
    const isJson = /^\s*\{/.test(text);
    let head: readonly string[] | undefined;
    for (const [index, padded] of text.split('\n').entries()) {
      const [line, number] = [padded.trim(), index + 1];
      if (line === '') continue;
      if (isJson) this.add(number, this.cellsOfJson(line));
      else if (head !== undefined) this.add(number, cellsOfCsv(line, head));
      else {
        head = splitCsvLine(line);
        for (const name of head) this.columnOf(name, head, number);
      }
    }
    this.checkMapped();
    if (this.format?.isLog === true) this.putInOrder();
    else this.findHoles();
    if (this.rows.length > 0 || this.issues.length > 0) return;
    const got = this.unanswered > 0 ? `${this.unanswered} requests without an answer` : 'none';
    this.issues.push({ path: 'line 1', expected: 'a request for each line', got });
  }

  /** With the mapped columns that lie within objects. */
  private cellsOfJson(text: string): Cells | undefined {
    const line = fieldsOf(parseJson(text));
    if (line === undefined || Array.isArray(line)) return undefined;
    const inside = this.paths.map(
      (name) => [name, name in line ? line[name] : valueAt(line, name.split('.'))] as const,
    );
    return [...Object.entries(line), ...inside.filter(([, value]) => value !== undefined)];
  }

  /** What a column holds; undefined, and noted once, when it is unknown. `names`: all of its line. */
  private columnOf(name: string, names: readonly string[], number: number): TraceColumn | undefined {
    if (this.columns.has(name)) return this.columns.get(name);
    this.format ??= formatOf(names);
    const column = this.format.columns.get(plainName(name));
    this.columns.set(name, column);
    if (column === undefined && this.format.isLog !== true) {
      const expected = `one of the columns ${this.format.spelled.join(', ')}`;
      this.issues.push({ path: `line ${number}`, expected, got: JSON.stringify(name) });
    }
    return column;
  }

  private add(number: number, cells: Cells | undefined): void {
    if (cells === undefined) {
      this.wrong(number, 'an object of JSON, or as many columns as the head has', 'something else');
      return;
    }
    const names = cells.map(([name]) => name);
    const columns = names.map((name) => this.columnOf(name, names, number));
    const line = new TraceLine();
    const { event, isLog = false } = this.format ?? {};
    try {
      for (const [index, [, value]] of cells.entries()) line.set(columns[index] ?? 'ignored', value);
      if (event !== undefined && line.texts.event !== event) return;
      if (isLog && (!line.hasAnswer || (event !== undefined && line.figures.outputTokens === undefined))) {
        this.unanswered++;
        return;
      }
      this.rows.push(this.inPlace(line.toRow(), line));
      this.lines.push(number);
    } catch (error) {
      if (!(error instanceof LineFault)) throw error;
      this.wrong(number, error.expected, error.got);
    }
  }

  /** The row with its arrival from the beginning on, where that is known already. */
  private inPlace(row: TraceRow, { texts }: TraceLine): TraceRow {
    const given = texts.arrivalMs ?? texts.arrivalSeconds ?? texts.arrivedAt ?? texts.endedAt;
    const isInstant = (texts.arrivalMs ?? texts.arrivalSeconds) === undefined;
    this.beginsAtMs ??= isInstant ? row.arrivalMs : 0;
    if (Math.abs(row.arrivalMs - this.beginsAtMs) > largest)
      throw new LineFault('an instant within 115 days of that of the first line', given);
    const arrivalMs = row.arrivalMs - this.beginsAtMs;
    if (this.format?.isLog !== true) {
      if (arrivalMs < this.lastMs || arrivalMs < 0)
        throw new LineFault('a time that is not before that of the line before', given);
      this.lastMs = arrivalMs;
    }
    return { ...row, arrivalMs };
  }

  /** Sorts the lines of a log by their arrivals, from the first arrival on, without those that got no answer. */
  private putInOrder(): void {
    const hasTokens = this.rows.some(({ outputTokens }) => outputTokens !== undefined);
    const answered = this.rows.filter(({ outputTokens }) => !hasTokens || outputTokens !== undefined);
    this.unanswered += this.rows.length - answered.length;
    answered.sort((a, b) => a.arrivalMs - b.arrivalMs);
    const first = answered[0]?.arrivalMs ?? 0;
    this.rows = answered.map((row) => ({ ...row, arrivalMs: row.arrivalMs - first }));
  }

  /** A figure that one line lacks and others have is a fault of that line. */
  private findHoles(): void {
    const known = [...this.columns.values()].filter((column) => column !== undefined && isFigure(column));
    const required = known.map((column) => figureColumns[column]).filter(({ of }) => figuresOfAll.includes(of));
    this.rows = this.rows.filter((row, index) => {
      const hole = required.find(({ of }) => row[of] === undefined);
      if (hole !== undefined) this.wrong(this.lines[index] ?? 0, `a number ${upTo} of ${hole.what}`, 'a hole');
      return hole === undefined;
    });
    this.issues.sort((a, b) => lineOf(a) - lineOf(b));
  }

  /** A column that is mapped and never comes is misspelled. */
  private checkMapped(): void {
    for (const name of Object.keys(this.mapped)) {
      if (this.columns.has(name)) continue;
      const known = [...this.columns.keys()];
      const expected = `one of the columns of the log, ${known.join(', ')}${didYouMean(name, known)}`;
      this.issues.push({ path: 'columns', expected, got: JSON.stringify(name) });
    }
  }

  private wrong(number: number, expected: string, got: string): void {
    this.badLines++;
    if (this.badLines <= mostIssues) this.issues.push({ path: `line ${number}`, expected, got });
  }
}

function lineOf({ path }: ConfigIssue): number {
  return Number(/^line (\d+)$/.exec(path)?.[1] ?? 0);
}

/** Undefined unless there are as many as in the head. */
function cellsOfCsv(line: string, head: readonly string[]): Cells | undefined {
  const cells = splitCsvLine(line);
  return cells.length === head.length ? head.map((name, index) => [name, cells[index]]) : undefined;
}

/** One line of CSV, as RFC 4180 has it, without line breaks inside of quotes. */
function splitCsvLine(line: string): string[] {
  const cells: string[] = [];
  const cell = /("(?:[^"]|"")*"|[^",]*)(,|$)/y;
  for (;;) {
    const match = cell.exec(line);
    if (match === null) return [];
    const [, text = '', end] = match;
    cells.push(text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text.trim());
    if (end !== ',') return cells;
  }
}
