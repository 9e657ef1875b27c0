/**
 * The columns that recorded traffic comes with, by who recorded it. Names are compared without case, blanks and
 * underscores.
 */

/** The content of a column. */
export type TraceColumn =
  | 'arrivalMs'
  | 'arrivalSeconds'
  /** An instant such as `2023-11-16 18:17:03.9799600`. */
  | 'arrivalDate'
  /** When the request ended, as an instant: arrival is `totalMs` before. */
  | 'endDate'
  | 'tenant'
  | 'priority'
  | 'promptTokens'
  | 'outputTokens'
  | 'serviceMs'
  | 'ttftMs'
  | 'totalMs'
  /** Known, and of no use here. */
  | 'ignored';

export interface TraceFormat {
  readonly name: string;
  /** The format is that of a file that has all of these. */
  readonly marks: readonly string[];
  /** By their names as they are compared. */
  readonly columns: Readonly<Record<string, TraceColumn>>;
  /** The columns that are read, as people spell them. */
  readonly spelled: readonly string[];
  /** True where lines stand in the order of their ends. */
  readonly isByEnd?: true;
  /** Other columns are of no use, and no fault. */
  readonly allowsOthers?: true;
  /** Lines with another value in this column are left out. */
  readonly only?: readonly [column: string, value: string];
}

const ignored = (names: readonly string[]): Record<string, TraceColumn> =>
  Object.fromEntries(names.map((name) => [name, 'ignored']));

function format({ columns, ...rest }: Omit<TraceFormat, 'spelled'>): TraceFormat {
  const entries = Object.entries(columns);
  return {
    ...rest,
    columns: Object.fromEntries(entries.map(([name, meaning]) => [plainName(name), meaning])),
    spelled: entries.flatMap(([name, meaning]) => (meaning === 'ignored' ? [] : [name])),
  };
}

/** The first whose marks are all there. */
const traceFormats: readonly TraceFormat[] = [
  format({
    name: 'access log of headgate gateway',
    marks: ['event', 'time'],
    columns: {
      time: 'endDate',
      event: 'ignored',
      tenant: 'tenant',
      priority: 'priority',
      promptTokens: 'promptTokens',
      completionTokens: 'outputTokens',
      durationMs: 'totalMs',
      ttftMs: 'ttftMs',
    },
    isByEnd: true,
    allowsOthers: true,
    only: ['event', 'request'],
  }),
  format({
    name: 'Azure LLM inference trace',
    marks: ['timestamp', 'contexttokens', 'generatedtokens'],
    columns: { TIMESTAMP: 'arrivalDate', ContextTokens: 'promptTokens', GeneratedTokens: 'outputTokens' },
  }),
  format({
    name: 'BurstGPT',
    marks: ['timestamp', 'requesttokens', 'responsetokens'],
    columns: {
      Timestamp: 'arrivalSeconds',
      'Request tokens': 'promptTokens',
      'Response tokens': 'outputTokens',
      ...ignored(['model', 'sessionid', 'elapsedtime', 'totaltokens', 'logtype']),
    },
  }),
  format({
    name: 'Mooncake',
    marks: ['timestamp', 'inputlength', 'outputlength'],
    columns: {
      timestamp: 'arrivalMs',
      input_length: 'promptTokens',
      output_length: 'outputTokens',
      ...ignored(['hashids', 'round', 'sessionid']),
    },
  }),
  format({
    name: 'VTC artifact',
    marks: ['t', 'client', 'in', 'out'],
    columns: { t: 'arrivalSeconds', client: 'tenant', in: 'promptTokens', out: 'outputTokens' },
  }),
  format({
    name: 'headgate trace',
    marks: [],
    columns: {
      arrivalMs: 'arrivalMs',
      arrival: 'arrivalSeconds',
      tenant: 'tenant',
      priority: 'priority',
      promptTokens: 'promptTokens',
      outputTokens: 'outputTokens',
      completionTokens: 'outputTokens',
      serviceMs: 'serviceMs',
      ttftMs: 'ttftMs',
      totalMs: 'totalMs',
    },
  }),
];

export function plainName(column: string): string {
  return column.toLowerCase().replaceAll(/[\s_-]/g, '');
}

export function formatOf(columns: readonly string[]): TraceFormat {
  const names = new Set(columns.map(plainName));
  return traceFormats.find(({ marks }) => marks.every((mark) => names.has(mark))) as TraceFormat;
}
