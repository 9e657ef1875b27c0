/** One answer of several workers: metrics as one exposition, demand as one. */

/** A metric: its heading, and its samples by name and labels. */
interface Metric {
  readonly heading: string;
  readonly type: string;
  readonly samples: Map<string, number>;
}

/** Gauges that are the same for all workers, or that say how bad it is in the worst: of these the highest counts. */
const highest =
  /_(?:saturation|ratio|limit|held|replicas|target|seconds|expired|open|breaker_open|endpoints|healthy|available|info|weight|threshold|lag\w*|index|share)$/;

export class MetricsSum {
  /** Counts of workers that are gone, so that no counter falls. */
  private readonly gone = new Map<string, Metric>();

  /** `last` is what a worker told last. */
  keep(last: string): void {
    for (const [name, { heading, type, samples }] of parsed(last)) {
      if (type === 'gauge') continue;
      addTo(this.gone, name, { heading, type, samples });
    }
  }

  /** The exposition of all workers, those that are gone included. */
  of(texts: readonly string[]): string {
    const sum = new Map<string, Metric>();
    for (const metrics of [...texts.map(parsed), this.gone])
      for (const [name, metric] of metrics) addTo(sum, name, metric);
    const blocks = [...sum.values()].map(({ heading, samples }) =>
      [heading, ...[...samples].map(([sample, value]) => `${sample} ${String(value).replace('Infinity', 'Inf')}`)].join(
        '\n',
      ),
    );
    return `${blocks.join('\n\n')}\n`;
  }
}

function addTo(sum: Map<string, Metric>, name: string, { heading, type, samples }: Metric): void {
  const known = sum.get(name) ?? { heading, type, samples: new Map<string, number>() };
  sum.set(name, known);
  const isHighest = type === 'gauge' && highest.test(name);
  for (const [sample, value] of samples) {
    const before = known.samples.get(sample);
    const joined = isHighest ? Math.max(before ?? value, value) : (before ?? 0) + value;
    known.samples.set(sample, joined);
  }
}

/** By name, in the order of the text. */
function parsed(text: string): Map<string, Metric> {
  const metrics = new Map<string, Metric>();
  let help = '';
  let current: Metric | undefined;
  for (const line of text.split('\n')) {
    const [, word, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (word === 'HELP') help = line;
    else if (word === 'TYPE') {
      current = { heading: `${help}\n${line}`, type: rest, samples: new Map() };
      metrics.set(name, current);
    } else if (line !== '') {
      const at = line.lastIndexOf(' ');
      current?.samples.set(line.slice(0, at), Number(line.slice(at + 1).replace('Inf', 'Infinity')));
    }
  }
  return metrics;
}

type Demand = { readonly [field: string]: unknown };
const same: ReadonlySet<string> = new Set(['saturation', 'endpoints', 'availableEndpoints', 'priority']);

/** What is asked of all workers, as `/demand` tells it. */
export function sumOfDemand(texts: readonly string[]): string {
  return JSON.stringify(texts.map((text): Demand => JSON.parse(text)).reduce(added));
}

function added(a: Demand, b: Demand): Demand {
  const sum: Record<string, unknown> = { ...a };
  for (const [field, value] of Object.entries(b)) {
    const before = a[field];
    if (typeof value === 'number' && typeof before === 'number')
      sum[field] = same.has(field) ? Math.max(before, value) : before + value;
    else if (isDemand(value) && isDemand(before)) sum[field] = added(before, value);
    else sum[field] = before ?? value;
  }
  const { waiting, dispatchedPerSecond } = sum;
  if ('timeToDrainMs' in sum && typeof waiting === 'number' && typeof dispatchedPerSecond === 'number') {
    const rest = dispatchedPerSecond > 0 ? (waiting / dispatchedPerSecond) * 1_000 : null;
    sum.timeToDrainMs = waiting === 0 ? 0 : rest;
  }
  return sum;
}

/** A band, or all bands by their priorities. */
function isDemand(value: unknown): value is Demand {
  return typeof value === 'object' && value !== null;
}
