/**
 * Reads the samples of a few metrics out of a Prometheus text exposition, chunk by chunk.
 *
 * Lines of other metrics are passed over without being taken apart, and one that cannot be read counts as absent. Bounded: what is kept
 * between two chunks is one line of at most `longestLine` characters. Each chunk costs O(its length), whatever it holds.
 * Source: the text format 0.0.4 of Prometheus; timestamps and the exemplars of OpenMetrics are ignored.
 */

/** The result of a reading. */
export interface SampleSink {
  /** The server has this metric, perhaps without samples so far. */
  declared(metric: string): void;
  sample(metric: string, labels: ReadonlyMap<string, string>, value: number): void;
}

export const longestLine = 65_536;

const declaration = /#[ \t]+TYPE[ \t]+([^\s]+)/y;
const label = /[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*"([^"\\\n]*(?:\\.[^"\\\n]*)*)"[ \t]*(?:,|(?=\}))/y;
const opening = /[ \t]*\{/y;
const closing = /[ \t]*\}/y;
const ending = /^[ \t]*([^\s#]+)(?:[ \t]+-?\d+(?:\.\d+)?)?[ \t\r]*(?:#.*)?$/;
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const infinity = /^([+-]?)inf(?:inity)?$/i;

const noLabels: ReadonlyMap<string, string> = new Map();

export class ExpositionReader {
  private readonly decoder = new TextDecoder();
  /** The wanted names by their length: most lines are told apart without comparing a letter. */
  private readonly wanted = new Map<number, string[]>();
  private readonly sink: SampleSink;
  private rest = '';
  /** Within a line that is too long. */
  private isSkipping = false;

  constructor(metrics: Iterable<string>, sink: SampleSink) {
    this.sink = sink;
    for (const metric of new Set(metrics)) {
      const sameLength = this.wanted.get(metric.length);
      if (sameLength === undefined) this.wanted.set(metric.length, [metric]);
      else sameLength.push(metric);
    }
  }

  push(chunk: Uint8Array): void {
    this.read(this.decoder.decode(chunk, { stream: true }));
  }

  /** The last line may lack its end. */
  end(): void {
    this.read(this.decoder.decode());
    if (!this.isSkipping) this.line(this.rest, 0, this.rest.length);
    this.rest = '';
  }

  private read(text: string): void {
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      if (this.isSkipping) this.isSkipping = false;
      else if (this.rest === '') this.line(text, start, end);
      else {
        const line = this.rest + text.slice(start, end);
        this.line(line, 0, line.length);
      }
      this.rest = '';
      start = end + 1;
    }
    if (this.isSkipping) return;
    this.isSkipping = this.rest.length + text.length - start > longestLine;
    this.rest = this.isSkipping ? '' : this.rest + text.slice(start);
  }

  private line(text: string, from: number, end: number): void {
    if (end - from > longestLine) return;
    let start = from;
    while (isBlank(text.charCodeAt(start))) start++;
    if (text.charCodeAt(start) === 35 /* # */) {
      this.comment(text, start);
      return;
    }
    let nameEnd = start;
    while (nameEnd < end && text.charCodeAt(nameEnd) !== 123 /* { */ && !isBlank(text.charCodeAt(nameEnd))) nameEnd++;
    const metric = this.wantedAt(text, start, nameEnd);
    if (metric !== undefined) this.readSample(metric, text.slice(nameEnd, end));
  }

  private comment(text: string, start: number): void {
    declaration.lastIndex = start;
    const name = declaration.exec(text)?.[1] ?? '';
    if (this.wanted.get(name.length)?.includes(name)) this.sink.declared(name);
  }

  private wantedAt(text: string, start: number, end: number): string | undefined {
    return this.wanted.get(end - start)?.find((name) => text.startsWith(name, start));
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

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}

function withoutEscapes(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([\\"n])/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
}

/** Undefined when the text is no number as Prometheus writes it. */
export function parseValue(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (decimal.test(text)) return Number(text);
  if (/^nan$/i.test(text)) return Number.NaN;
  const sign = infinity.exec(text)?.[1];
  if (sign === undefined) return undefined;
  return sign === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
