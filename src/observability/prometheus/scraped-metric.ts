/**
 * A metric of a registry, which takes a name only once: its controllers share it. Invariant: registered while one
 * reports; no two of one metric have the same pool.
 */
import { configError } from '../../base/faults/flow-config-error.js';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels?: Labels;
  /** Labels beside those, in an object that lives as long as its series: prom-client prints it once and keeps it. */
  readonly sharedLabels?: Labels;
  readonly value: number;
  /** Where it is not the metric's own: `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
}

/** A metric, as far as a registry needs it. */
export interface RegisteredMetric {
  get(): Promise<unknown>;
  reset(): void;
}

/** The part of prom-client's `Registry` that is used. Nothing of prom-client is imported, so any copy will do. */
export interface MetricsRegister {
  registerMetric(metric: RegisteredMetric): void;
  removeSingleMetric(name: string): void;
  getSingleMetric(name: string): unknown;
}

/** One kind of metric, and where its samples come from. `S` is the one who reports it. */
export interface Family<S> {
  /** Without the prefix, unless it is of others and has none. */
  readonly name: string;
  readonly hasPrefix?: false;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** How prom-client puts the workers of a cluster together. @default 'sum' */
  readonly aggregator?: 'sum' | 'max' | 'min';
  /** `name` is the full one. List a histogram's series before the first is taken, so that none is told twice. */
  samples(source: S, name: string): Iterable<Sample>;
  /** For counts that are kept here. */
  reset?(source: S): void;
}

/** Makes families with a sample for each part of a source that has the figure. Names of counters end in `_total`. */
export function familiesOf<S, T>(
  prefix: string,
  labels: readonly string[],
  parts: (source: S) => Iterable<readonly [Labels, T]>,
) {
  return (name: string, help: string, read: (part: T) => number | undefined): Family<S> => ({
    name: `${prefix}${name}`,
    type: name.endsWith('_total') ? 'counter' : 'gauge',
    help,
    labels,
    *samples(source): Generator<Sample, void, undefined> {
      for (const [labels, part] of parts(source)) {
        const value = read(part);
        if (value !== undefined) yield { labels, value };
      }
    },
  });
}

/** Samples: printing as many takes less than a millisecond. */
export const printedAtOnce = 500;

let lastTurn: Promise<void> = Promise.resolve();

/** Scrapes that run at the same time take turns, too. */
export function turnOfItsOwn(): Promise<void> {
  lastTurn = lastTurn.then(() => new Promise((resolve) => setTimeout(resolve, 0)));
  return lastTurn;
}

export class ScrapedMetric<S = never> implements RegisteredMetric {
  /** A registry in OpenMetrics mode cuts `_total` off, and puts it behind every sample. */
  name: string;
  readonly type: string;
  readonly help: string;
  readonly aggregator: string;
  readonly sources: Map<string, S> = new Map();
  private readonly family: Family<S>;

  constructor(name: string, family: Family<S>) {
    this.name = name;
    this.family = family;
    this.type = family.type;
    this.help = family.help;
    this.aggregator = family.aggregator ?? 'sum';
  }

  async get(): Promise<object> {
    const merged = ({ sharedLabels, labels, ...sample }: Sample) => ({
      ...sample,
      labels: { ...sharedLabels, ...labels },
    });
    return this.described(this.samples().map(merged));
  }

  /** prom-client prints from this if it knows it, else from `get`; what is long waits for a turn of its own. */
  async getForPromString(): Promise<object> {
    const samples = this.samples();
    if (samples.length > printedAtOnce) await turnOfItsOwn();
    return this.described(samples);
  }

  /** Gauges and counters of this moment; histograms, which are long, are read where the caller takes them. */
  readings(): Iterable<Sample>[] {
    if (this.type !== 'histogram') return [this.samples()];
    return Array.from(this.sources.values(), (source) => this.family.samples(source, this.name));
  }

  private described(values: readonly object[]): object {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values };
  }

  private samples(): Sample[] {
    return [...this.sources.values()].flatMap((source) => [...this.family.samples(source, this.name)]);
  }

  /** For `registry.resetMetrics()`. Figures that are read from the state of a controller cannot be reset. */
  reset(): void {
    for (const source of this.sources.values()) this.family.reset?.(source);
  }
}

/** Registers or joins families; returns what removes them. @throws FlowConfigError for a pool twice, a foreign name */
export function expose<S>(
  register: MetricsRegister,
  prefix: string,
  families: readonly Family<S>[],
  pool: string,
  source: S,
): () => void {
  const metrics = families.map((family) =>
    metricFor(register, `${family.hasPrefix === false ? '' : prefix}${family.name}`, family),
  );
  if (metrics.some(({ sources }) => sources.has(pool))) {
    const expected = 'a registry that has no other source for this pool: give `inferencePool` or `prefix`';
    throw configError('headgate/prometheus', 'register', expected, `one with ${JSON.stringify(pool)}`);
  }
  const names = metrics.map(({ name }) => name);
  for (const metric of metrics) {
    if (metric.sources.size === 0) register.registerMetric(metric);
    metric.sources.set(pool, source);
  }
  return () => {
    for (const [index, metric] of metrics.entries()) {
      if (metric.sources.get(pool) !== source) continue;
      metric.sources.delete(pool);
      const name = names[index] as string;
      if (metric.sources.size === 0 && register.getSingleMetric(name) === metric) register.removeSingleMetric(name);
    }
  };
}

function metricFor<S>(register: MetricsRegister, name: string, family: Family<S>): ScrapedMetric<S> {
  const registered = register.getSingleMetric(name);
  if (registered === undefined) return new ScrapedMetric(name, family);
  if (registered instanceof ScrapedMetric) return registered;
  const expected = `a registry in which the name ${name} is free: give \`prefix\``;
  throw configError('headgate/prometheus', 'register', expected, 'one that has a metric of that name');
}
