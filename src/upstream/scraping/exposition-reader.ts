/**
 * Reads the samples of a few metrics out of a Prometheus text exposition, chunk by chunk.
 * Lines of other metrics are passed over whole, and one that cannot be read counts as absent. Bounded: one line of at
 * most `longestLine` characters is kept between chunks. A chunk costs O(its length). Source: the text format 0.0.4 of
 * Prometheus; timestamps and the exemplars of OpenMetrics are ignored.
 */
export interface SampleSink {
  /** The server has this metric, perhaps without samples so far. */
  declared(metric: string): void;
  sample(metric: string, labels: ReadonlyMap<string, string>, value: number): void;
}

export const longestLine = 65_536;

const label = /[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*"([^"\\\n]*(?:\\.[^"\\\n]*)*)"[ \t]*(?:,|(?=\}))/y;
const opening = /[ \t]*\{/y;
const closing = /[ \t]*\}/y;
const ending = /^[ \t]*([^\s#]+)(?:[ \t]+-?\d+(?:\.\d+)?)?[ \t\r]*(?:#.*)?$/;
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const infinity = /^([+-]?)inf(?:inity)?$/i;
/** Longer text is no number that anybody means; `decimal` would go back over it digit by digit. */
const longestNumber = 400;

const noLabels: ReadonlyMap<string, string> = new Map();

/** Finds lines and declarations of these metrics in one pass of compiled code, four times as fast as line by line. */
export function lineFinder(metrics: Iterable<string>): RegExp {
  const names = [...new Set(metrics)].map((metric) => metric.replace(/[^\w:]/g, '\\$&'));
  const name = names.length === 0 ? '(?!)' : names.join('|');
  return new RegExp(`\\n[ \\t]*(?:(#)[ \\t]+TYPE[ \\t]+)?(${name})(?=[\\s{]|$)`, 'g');
}

export class ExpositionReader {
  private readonly decoder = new TextDecoder();
  private readonly finder: RegExp;
  private readonly sink: SampleSink;
  /** The line that has no end yet. */
  private rest = '';
  /** Within a line that is too long. */
  private isSkipping = false;

  constructor(finder: RegExp, sink: SampleSink) {
    this.finder = finder;
    this.sink = sink;
  }

  push(chunk: Uint8Array): void {
    const text = this.decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf('\n');
    if (end === -1) return void this.keep(text);
    const start = this.isSkipping ? text.indexOf('\n') : 0;
    this.isSkipping = false;
    const lines = this.rest + text.slice(start, end);
    this.rest = '';
    this.read(lines);
    this.keep(text.slice(end + 1));
  }

  /** The last line may lack its end. */
  end(): void {
    this.keep(this.decoder.decode());
    this.read(this.rest);
    this.rest = '';
  }

  private keep(text: string): void {
    if (this.isSkipping) return;
    this.isSkipping = this.rest.length + text.length > longestLine;
    this.rest = this.isSkipping ? '' : this.rest + text;
  }

  private read(lines: string): void {
    const { finder } = this;
    const text = `\n${lines}`;
    finder.lastIndex = 0;
    for (let found = finder.exec(text); found !== null; found = finder.exec(text)) {
      const metric = found[2] as string;
      const nameEnd = finder.lastIndex;
      const feed = text.indexOf('\n', nameEnd);
      const lineEnd = feed === -1 ? text.length : feed;
      if (lineEnd - found.index - 1 > longestLine) continue;
      if (found[1] === undefined) this.readSample(metric, text.slice(nameEnd, lineEnd));
      else if (text.charCodeAt(nameEnd) !== 123 /* { */) this.sink.declared(metric);
    }
  }

  /** `rest`: the line after the name. */
  private readSample(metric: string, rest: string): void {
    const labels = readLabels(rest);
    if (labels === undefined) return;
    const value = parseValue(ending.exec(rest.slice(labels.end))?.[1]);
    if (value !== undefined) this.sink.sample(metric, labels.read, value);
  }
}

/** Undefined when they cannot be read. `end`: where the rest of the line begins. */
function readLabels(text: string): { readonly read: ReadonlyMap<string, string>; readonly end: number } | undefined {
  opening.lastIndex = 0;
  if (!opening.test(text)) return { read: noLabels, end: 0 };
  const read = new Map<string, string>();
  for (let at = opening.lastIndex; ; at = label.lastIndex) {
    closing.lastIndex = at;
    if (closing.test(text)) return { read, end: closing.lastIndex };
    label.lastIndex = at;
    const match = label.exec(text);
    if (match === null) return undefined;
    read.set(match[1] ?? '', withoutEscapes(match[2] ?? ''));
  }
}

function withoutEscapes(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([\\"n])/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
}

/** Undefined when the text is no number as Prometheus writes it. */
export function parseValue(text: string | undefined): number | undefined {
  if (text === undefined || text.length > longestNumber) return undefined;
  if (decimal.test(text)) return Number(text);
  if (/^nan$/i.test(text)) return NaN;
  const sign = infinity.exec(text)?.[1];
  if (sign === undefined) return undefined;
  return sign === '-' ? -Infinity : Infinity;
}
