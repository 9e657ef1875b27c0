/** From the samples of one exposition to a report for the pool, by the sources of one engine. */
import { put } from '../../base/put.js';
import { rankFigures } from '../../base/rank-figures.js';
import type { LoraAdapters, MetricsReport, RankLoad } from '../../types/index.js';
import { ScrapeError } from '../asking.js';
import { parseValue, type SampleSink } from './exposition-reader.js';

const basics = ['waitingQueueSize', 'runningRequests', 'kvCacheUsage'] as const;

type Figure = (typeof basics)[number] | (typeof rankFigures)[number];

/** Which series of a metric are meant: `name`, or `name{label="value"}`. */
export interface MetricSelector {
  readonly metric: string;
  /** Labels that a series must have, with these values. */
  readonly labels: readonly (readonly [name: string, value: string])[];
  /** The figure is this label's value, and not the sample's. */
  readonly valueLabel: string | undefined;
}

/** The sources of an engine, read from what the host wrote. */
export interface LoadSources {
  readonly name: string;
  readonly selectors: { readonly [F in Figure]?: readonly MetricSelector[] | undefined };
  readonly loraAdapters: MetricSelector | undefined;
  readonly rankLabel: string | undefined;
}

/** No server has more ranks; a server that sends more series would fill the memory. */
const mostRanks = 1024;

type ByRank = Map<string, number>;

export function metricsOf({ selectors, loraAdapters }: LoadSources): readonly string[] {
  const named = Object.values(selectors).flatMap((of) => of ?? []);
  return [...named, ...(loraAdapters === undefined ? [] : [loraAdapters])].map(({ metric }) => metric);
}

/** One reading; use it once. */
export class LoadReading implements SampleSink {
  readonly sources: LoadSources;
  private readonly found = new Map<MetricSelector, ByRank>();
  private readonly selectorsOf = new Map<string, MetricSelector[]>();
  private readonly seen = new Map<string, boolean>();
  private lora: { readonly atValue: number; readonly adapters: LoraAdapters } | undefined;

  constructor(sources: LoadSources) {
    this.sources = sources;
    for (const selector of Object.values(sources.selectors).flatMap((selectors) => selectors ?? []))
      this.selectorsOf.set(selector.metric, [...(this.selectorsOf.get(selector.metric) ?? []), selector]);
  }

  /** True when the server has the metric without which there is no report. */
  get isRecognized(): boolean {
    return this.byRank('waitingQueueSize') !== undefined;
  }

  declared(metric: string): void {
    if (!this.seen.has(metric)) this.seen.set(metric, false);
  }

  sample(metric: string, labels: ReadonlyMap<string, string>, value: number): void {
    const { loraAdapters, rankLabel } = this.sources;
    this.seen.set(metric, true);
    for (const selector of this.selectorsOf.get(metric) ?? []) {
      if (!isSelected(selector, labels)) continue;
      const figure = selector.valueLabel === undefined ? value : (parseValue(labels.get(selector.valueLabel)) ?? NaN);
      if (Number.isFinite(figure) && figure >= 0) this.note(selector, labels.get(rankLabel ?? '') ?? '', figure);
    }
    if (metric === loraAdapters?.metric && isSelected(loraAdapters, labels)) this.noteAdapters(labels, value);
  }

  /** @throws ScrapeError when the server lacks a metric that the sources name for a basic figure. */
  report(): Omit<MetricsReport, 'sampledAtMs'> {
    const { selectors } = this.sources;
    const missing = basics.filter((figure) => selectors[figure] !== undefined && this.byRank(figure) === undefined);
    if (missing.length > 0)
      throw new ScrapeError('no-metrics', `no ${this.namesOf(missing)} in the answer (profile ${this.sources.name})`);
    const ranks = this.ranks();
    return {
      waitingQueueSize: sum(this.byRank('waitingQueueSize')),
      runningRequests: sum(this.byRank('runningRequests')),
      kvCacheUsage: sum(this.byRank('kvCacheUsage')) / Math.max(this.byRank('kvCacheUsage')?.size ?? 0, 1),
      ...(ranks.length === 0 ? {} : { ranks }),
      ...(this.lora === undefined ? {} : { loraAdapters: this.lora.adapters }),
    };
  }

  private note(selector: MetricSelector, rank: string, figure: number): void {
    const byRank = this.found.get(selector) ?? put(this.found, selector, new Map<string, number>());
    byRank.set(rank, Math.max(figure, byRank.get(rank) ?? 0));
    if (byRank.size > mostRanks)
      throw new ScrapeError('too-large', `more than ${mostRanks} ranks in ${selector.metric}`);
  }

  /** The engine leaves a series behind for each set of adapters that it ever ran: the newest is true. */
  private noteAdapters(labels: ReadonlyMap<string, string>, value: number): void {
    if (!(value >= (this.lora?.atValue ?? -Infinity))) return;
    const max = parseValue(labels.get('max_lora')) ?? NaN;
    const adapters = {
      running: namesIn(labels.get('running_lora_adapters')),
      waiting: namesIn(labels.get('waiting_lora_adapters')),
    };
    this.lora = { atValue: value, adapters: Number.isFinite(max) && max >= 0 ? { ...adapters, max } : adapters };
  }

  /** Of the first source with figures; empty where a metric has no samples yet; undefined: unknown, and not idle. */
  private byRank(figure: Figure): ByRank | undefined {
    const selectors = this.sources.selectors[figure] ?? [];
    for (const selector of selectors) {
      const byRank = this.found.get(selector);
      if (byRank !== undefined) return byRank;
    }
    return selectors.some(({ metric }) => this.seen.get(metric) === false) ? new Map() : undefined;
  }

  private ranks(): RankLoad[] {
    const known = rankFigures.flatMap((figure) => {
      const byRank = this.byRank(figure);
      return byRank === undefined || byRank.size === 0 ? [] : [[figure, byRank] as const];
    });
    if (known.length === 0) return [];
    const usage = this.byRank('kvCacheUsage') ?? new Map();
    const labels = new Set([...known.map(([, byRank]) => byRank), usage].flatMap((byRank) => [...byRank.keys()]));
    // A series without a rank speaks for all of them.
    if (labels.size > 1) labels.delete('');
    return [...labels].sort(byNumber).map((rank) => {
      const figures = known.map(([figure, byRank]) => [figure, byRank.get(rank) ?? byRank.get('')] as const);
      const load = Object.fromEntries(figures) as RankLoad;
      const used = usage.get(rank) ?? usage.get('');
      if (load.kvUsedBlocks !== undefined || load.totalBlocks === undefined || used === undefined) return load;
      return { ...load, kvUsedBlocks: Math.round(used * load.totalBlocks) };
    });
  }

  private namesOf(missing: readonly Figure[]): string {
    const names = missing.map((figure) => this.sources.selectors[figure]?.map(({ metric }) => metric).join(' or '));
    return [...new Set(names)].join(', no ');
  }
}

function sum(byRank: ByRank | undefined): number {
  let total = 0;
  for (const value of byRank?.values() ?? []) total += value;
  return total;
}

function namesIn(list = ''): readonly string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

const byNumber = (a: string, b: string): number => Number(a) - Number(b) || (a < b ? -1 : 1);

const form = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?$/;
const pair = /\s*([A-Za-z_]\w*)\s*=\s*(?:"([^"\\]*)"|([^\s",{}\\]+))\s*(,|$)/y;

/** Undefined when the text is no selector. Values need no quotes, as in llm-d's specifications of metrics. */
export function parseSelector(text: string, valueLabel?: string): MetricSelector | undefined {
  const [, metric, conditions = ''] = form.exec(text.trim()) ?? [];
  if (metric === undefined) return undefined;
  const labels: (readonly [string, string])[] = [];
  for (let at = 0; at < conditions.length; at = pair.lastIndex) {
    pair.lastIndex = at;
    const match = pair.exec(conditions);
    if (match === null) return undefined;
    labels.push([match[1] ?? '', match[2] ?? match[3] ?? '']);
  }
  return { metric, labels, valueLabel };
}

const isSelected = ({ labels }: MetricSelector, of: ReadonlyMap<string, string>): boolean =>
  labels.every(([name, value]) => of.get(name) === value);
