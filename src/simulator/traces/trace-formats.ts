/** The columns that recorded traffic comes with, by who recorded it. Names are compared without case, blanks and underscores. */

/** What a column holds. */
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
  readonly columns: Readonly<Record<string, TraceColumn>>;
  /** True where lines stand in the order of their ends. */
  readonly isByEnd?: true;
  /** Other columns are of no use, and no fault. */
  readonly allowsOthers?: true;
  /** Lines with another value in this column are left out. */
  readonly only?: readonly [column: string, value: string];
}

const ignored = (names: readonly string[]): Record<string, TraceColumn> => Object.fromEntries(names.map((name) => [name, 'ignored']));

/** The first whose marks are all there. */
const traceFormats: readonly TraceFormat[] = [
  {
    name: 'access log of headgate gateway',
    marks: ['event', 'time'],
    columns: {
      time: 'endDate',
      event: 'ignored',
      tenant: 'tenant',
      priority: 'priority',
      prompttokens: 'promptTokens',
      completiontokens: 'outputTokens',
      durationms: 'totalMs',
      ttftms: 'ttftMs',
    },
    isByEnd: true,
    allowsOthers: true,
    only: ['event', 'request'],
  },
  {
    name: 'Azure LLM inference trace',
    marks: ['timestamp', 'contexttokens', 'generatedtokens'],
    columns: { timestamp: 'arrivalDate', contexttokens: 'promptTokens', generatedtokens: 'outputTokens' },
  },
  {
    name: 'BurstGPT',
    marks: ['timestamp', 'requesttokens', 'responsetokens'],
    columns: {
      timestamp: 'arrivalSeconds',
      requesttokens: 'promptTokens',
      responsetokens: 'outputTokens',
      ...ignored(['model', 'sessionid', 'elapsedtime', 'totaltokens', 'logtype']),
    },
  },
  {
    name: 'Mooncake',
    marks: ['timestamp', 'inputlength', 'outputlength'],
    columns: {
      timestamp: 'arrivalMs',
      inputlength: 'promptTokens',
      outputlength: 'outputTokens',
      ...ignored(['hashids', 'round', 'sessionid']),
    },
  },
  {
    name: 'VTC artifact',
    marks: ['t', 'client', 'in', 'out'],
    columns: { t: 'arrivalSeconds', client: 'tenant', in: 'promptTokens', out: 'outputTokens' },
  },
  {
    name: 'headgate trace',
    marks: [],
    columns: {
      arrivalms: 'arrivalMs',
      arrival: 'arrivalSeconds',
      tenant: 'tenant',
      priority: 'priority',
      prompttokens: 'promptTokens',
      outputtokens: 'outputTokens',
      completiontokens: 'outputTokens',
      servicems: 'serviceMs',
      ttftms: 'ttftMs',
      totalms: 'totalMs',
    },
  },
];

export function plainName(column: string): string {
  return column.toLowerCase().replaceAll(/[\s_-]/g, '');
}

export function formatOf(columns: readonly string[]): TraceFormat {
  const names = new Set(columns.map(plainName));
  return traceFormats.find(({ marks }) => marks.every((mark) => names.has(mark))) as TraceFormat;
}
