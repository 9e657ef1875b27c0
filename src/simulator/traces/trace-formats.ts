/** The columns of recorded traffic, by who recorded it. Names are compared without case, blanks and underscores. */
import { didYouMean } from '../../base/faults/did-you-mean.js';
import { type ConfigIssue, FlowConfigError } from '../../index.js';

/** Columns of figures: the figure of a row that they hold, what a unit of theirs is in it, and its name. */
export const figureColumns = {
  promptTokens: { of: 'promptTokens', factor: 1, what: 'prompt tokens' },
  outputTokens: { of: 'outputTokens', factor: 1, what: 'output tokens' },
  serviceMs: { of: 'serviceMs', factor: 1, what: 'service time' },
  serviceSeconds: { of: 'serviceMs', factor: 1000, what: 'service time' },
  queuedMs: { of: 'queuedMs', factor: 1, what: 'time in the queue' },
  queuedSeconds: { of: 'queuedMs', factor: 1000, what: 'time in the queue' },
  heldMs: { of: 'heldMs', factor: 1, what: 'time of its seat' },
  ttftMs: { of: 'ttftMs', factor: 1, what: 'time to the first token' },
  ttftSeconds: { of: 'ttftMs', factor: 1000, what: 'time to the first token' },
  totalMs: { of: 'totalMs', factor: 1, what: 'total time' },
  totalSeconds: { of: 'totalMs', factor: 1000, what: 'total time' },
} as const;

export type FigureColumn = keyof typeof figureColumns;

export function isFigure(column: string): column is FigureColumn {
  return Object.hasOwn(figureColumns, column);
}

export type RowFigure = (typeof figureColumns)[FigureColumn]['of'];

/** Instants are such as `2023-11-16 18:17:03.9799600`, or seconds or milliseconds since 1970. */
const instants = ['arrivedAt', 'firstTokenAt', 'endedAt'] as const;
/** `status`: of the answer, by HTTP: from 400 up there was none. */
const texts = ['tenant', 'priority', 'server', 'status', 'event'] as const;

export type TextColumn = 'arrivalMs' | 'arrivalSeconds' | (typeof instants)[number] | (typeof texts)[number];

/** The content of a column; `ignored` is known, and of no use here. */
export type TraceColumn = FigureColumn | TextColumn | 'ignored';

export interface TraceFormat {
  readonly name: string;
  /** The format is that of a file that has all of these: by default all columns that are read. */
  readonly marks: readonly string[];
  /** By their names as they are compared. */
  readonly columns: ReadonlyMap<string, TraceColumn>;
  /** The columns that are read, as people spell them. */
  readonly spelled: readonly string[];
  /** True for logs: lines stand in any order, some are of requests without an answer, other columns are of no use. */
  readonly isLog?: true;
  /** Lines of other events are left out, and an answer always has output tokens. */
  readonly event?: string;
}

const as = (column: TraceColumn, names: readonly string[]): Record<string, TraceColumn> =>
  Object.fromEntries(names.map((name) => [name, column]));
const sameName = <C extends TraceColumn>(columns: readonly C[]): Record<string, TraceColumn> =>
  Object.fromEntries(columns.map((column) => [column, column]));

type Written = Partial<Omit<TraceFormat, 'columns'>> & { name: string; columns: Record<string, TraceColumn> };

function format({ columns, ...rest }: Written): TraceFormat {
  const entries = Object.entries(columns);
  const spelled = entries.flatMap(([name, meaning]) => (meaning === 'ignored' ? [] : [name]));
  return {
    marks: spelled.map(plainName),
    spelled,
    ...rest,
    columns: new Map(entries.map(([name, meaning]) => [plainName(name), meaning])),
  };
}

/** Our own names, which those of other logs are mapped to. */
const own = format({
  name: 'headgate trace',
  marks: [],
  columns: {
    arrivalMs: 'arrivalMs',
    arrival: 'arrivalSeconds',
    ...sameName(instants),
    ...sameName(texts.filter((column) => column !== 'event')),
    completionTokens: 'outputTokens',
    ...sameName(Object.keys(figureColumns).filter(isFigure)),
  },
});

/** The first whose marks are all there. */
const traceFormats: readonly TraceFormat[] = [
  format({
    name: 'access log of headgate gateway',
    marks: ['event', 'time'],
    columns: {
      time: 'endedAt',
      ...sameName(['event', 'tenant', 'priority', 'promptTokens']),
      completionTokens: 'outputTokens',
      endpoint: 'server',
      ...sameName(['queuedMs', 'ttftMs', 'heldMs']),
      durationMs: 'totalMs',
    },
    isLog: true,
    event: 'request',
  }),
  format({
    name: 'Azure LLM inference trace',
    columns: { TIMESTAMP: 'arrivedAt', ContextTokens: 'promptTokens', GeneratedTokens: 'outputTokens' },
  }),
  format({
    name: 'BurstGPT',
    columns: {
      Timestamp: 'arrivalSeconds',
      'Request tokens': 'promptTokens',
      'Response tokens': 'outputTokens',
      ...as('ignored', ['model', 'sessionid', 'elapsedtime', 'totaltokens', 'logtype']),
    },
  }),
  format({
    name: 'Mooncake',
    columns: {
      timestamp: 'arrivalMs',
      input_length: 'promptTokens',
      output_length: 'outputTokens',
      ...as('ignored', ['hashids', 'round', 'sessionid']),
    },
  }),
  format({
    name: 'VTC artifact',
    columns: { t: 'arrivalSeconds', client: 'tenant', in: 'promptTokens', out: 'outputTokens' },
  }),
  own,
];

export function plainName(column: string): string {
  return column.toLowerCase().replaceAll(/[\s_-]/g, '');
}

export function formatOf(columns: readonly string[]): TraceFormat {
  const names = new Set(columns.map(plainName));
  return traceFormats.find(({ marks }) => marks.every((mark) => names.has(mark))) as TraceFormat;
}

/** The format of a log by `mapped`, ours by theirs; our names count too, unless mapped to. @throws FlowConfigError */
export function mappedFormat(mapped: Readonly<Record<string, string>>): TraceFormat {
  const issues: ConfigIssue[] = [];
  const columns = Object.entries(mapped).flatMap(([theirs, ours]): [string, TraceColumn][] => {
    const column = own.columns.get(plainName(ours));
    if (column !== undefined) return [[plainName(theirs), column]];
    const expected = `one of ${own.spelled.join(', ')}${didYouMean(ours, own.spelled)}`;
    issues.push({ path: theirs, expected, got: JSON.stringify(ours) });
    return [];
  });
  if (issues.length > 0) throw new FlowConfigError('columns', issues);
  const taken = new Set(columns.map(([, column]) => column));
  const others = [...own.columns].filter(([, column]) => !taken.has(column));
  return { ...own, name: 'mapped columns', columns: new Map([...others, ...columns]), isLog: true };
}
