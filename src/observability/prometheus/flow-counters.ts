/**
 * Counts what events tell, by priority, flow and outcome, and keeps the rows of what waits. O(1) for each event: for
 * most of them one map lookup and two increments. Invariant: at most 100 priorities beside the configured ones, and in
 * each as many flows as the guard admits; at most `maxSeries` series of each histogram and as many rows, whichever
 * flows, models and outcomes they are for; the rest is `other`.
 */
import { type BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import { put } from '../../base/put.js';
import type { OutcomeType } from '../../index.js';
import { cycleDurationBuckets } from '../metrics/duration-buckets.js';
import { DurationHistogram } from './duration-histogram.js';
import { type Models, noModels, otherModels } from './model-labels.js';
import type { Labels } from './scraped-metric.js';

export type OutcomeCounts = Record<OutcomeType, number>;

const noOutcomes: OutcomeCounts = {
  Dispatched: 0,
  RejectedCapacity: 0,
  RejectedNoEndpoints: 0,
  RejectedOther: 0,
  EvictedTTL: 0,
  EvictedNoEndpoints: 0,
  EvictedContextCancelled: 0,
  EvictedOther: 0,
};

/** Priorities that clients may bring up beside the configured ones. */
const mostPriorities = 100;

/** Waiting requests under one set of labels. */
export interface QueueRow {
  readonly labels: Labels;
  requests: number;
  bytes: number;
}

class FlowCell {
  /** Of the flow itself: those that all its series have. */
  readonly labels: Labels;
  /** By outcome, and by models where somebody names them. */
  readonly durations: Map<string, DurationHistogram> = new Map();
  /** By outcome, `NotYetFinalized` for requests that wait. */
  readonly enqueueDurations: Map<string, DurationHistogram> = new Map();
  /** By models: a row for each that was heard of, or has something waiting. */
  readonly rows: Map<string, QueueRow> = new Map();
  /** The one of `durations` that nearly every request goes to: dispatched, no model named. */
  dispatched: DurationHistogram | undefined = undefined;

  constructor(labels: Labels) {
    this.labels = labels;
  }

  forgetDurations(): void {
    this.durations.clear();
    this.enqueueDurations.clear();
    this.dispatched = undefined;
    for (const [models, { requests }] of this.rows) if (requests === 0) this.rows.delete(models);
  }
}

type PriorityCell = Readonly<{ label: string; outcomes: OutcomeCounts; flows: Map<string, FlowCell> }>;

function cellOf(label: string): PriorityCell {
  return { label, outcomes: { ...noOutcomes }, flows: new Map() };
}

type SeriesKind = 'durations' | 'enqueueDurations';

/** What the series of one controller have in common. */
export interface SeriesLabels {
  /** On metrics that have the label `inference_pool` in any case. */
  readonly pool: Labels;
  /** On the others: empty unless the pool has a name. */
  readonly poolIfNamed: Labels;
  /** Undefined where fairness IDs are not told: no series has the label `fairness_id`. */
  readonly fairnessIds: BoundedLabel | undefined;
  /** Of each histogram, and rows; what is shared as `other` comes on top. */
  readonly maxSeries: number;
}

export class FlowCounters {
  readonly cycles: DurationHistogram;
  private readonly cells = new Map<number, PriorityCell>();
  private readonly otherPriorities = cellOf(otherLabel);
  /** The priority that came last, which often comes again. */
  private lastPriority = NaN;
  private lastCell = this.otherPriorities;
  private readonly most: number;
  /** How many there are in all cells together. */
  private readonly counts = { durations: 0, enqueueDurations: 0, rows: 0 };
  private readonly common: SeriesLabels;
  private readonly queueDurationBuckets: readonly number[];

  /** `configured`: priorities that are kept apart whatever comes. */
  constructor(common: SeriesLabels, configured: readonly number[], queueDurationBuckets: readonly number[]) {
    this.common = common;
    this.queueDurationBuckets = queueDurationBuckets;
    this.cycles = new DurationHistogram(common.poolIfNamed, cycleDurationBuckets);
    this.most = mostPriorities + configured.length;
    for (const priority of configured) this.cellOf(priority);
  }

  settled(fairnessId: string, priority: number, outcome: OutcomeType, queuedMs: number, models: Models): void {
    const cell = this.cellOf(priority);
    cell.outcomes[outcome]++;
    const flow = this.flowOf(cell, fairnessId);
    if (models === noModels && outcome === 'Dispatched' && flow.dispatched !== undefined) {
      flow.dispatched.observe(queuedMs / 1000);
      return;
    }
    const series =
      flow.durations.get(keyOf(outcome, models)) ?? this.newSeries('durations', cell, flow, outcome, models);
    series.observe(queuedMs / 1000);
  }

  enqueued(fairnessId: string, priority: number, outcome: OutcomeType | 'NotYetFinalized', durationMs: number): void {
    const cell = this.cellOf(priority);
    const flow = this.flowOf(cell, fairnessId);
    const series =
      flow.enqueueDurations.get(outcome) ?? this.newSeries('enqueueDurations', cell, flow, outcome, noModels);
    series.observe(durationMs / 1000);
  }

  /** The series of a flow end; what several flows share stays. */
  flowRemoved(fairnessId: string, priority: number): void {
    const flows = this.cells.get(priority)?.flows;
    const flow = fairnessId === otherLabel ? undefined : flows?.get(fairnessId);
    if (flow === undefined) return;
    this.counts.durations -= flow.durations.size;
    this.counts.enqueueDurations -= flow.enqueueDurations.size;
    this.counts.rows -= flow.rows.size;
    flows?.delete(fairnessId);
  }

  /** By priority: the counts of each. */
  *priorities(): Iterable<PriorityCell> {
    yield* this.cells.values();
    if (this.cells.size >= this.most) yield this.otherPriorities;
  }

  *series(kind: SeriesKind): Iterable<DurationHistogram> {
    for (const flow of this.flows()) yield* flow[kind].values();
  }

  /** Waiting requests of every flow that was heard of, by models. */
  *rows(): Iterable<QueueRow> {
    for (const { rows } of this.flows()) yield* rows.values();
  }

  /** The row of a flow under its label, made when missing. */
  rowOf(label: string, priority: number, models: Models): QueueRow {
    const cell = this.cellOf(priority);
    const flow = this.flowNamed(cell, label);
    return flow.rows.get(models.key) ?? this.rowIn(...this.ownerOf('rows', cell, flow, models));
  }

  resetOutcomes(): void {
    for (const { outcomes } of this.priorities()) Object.assign(outcomes, noOutcomes);
  }

  /** Forgets the flows, except the rows of what waits. */
  resetDurations(): void {
    for (const { flows } of this.priorities()) {
      for (const [label, flow] of flows) {
        flow.forgetDurations();
        if (flow.rows.size === 0) flows.delete(label);
      }
    }
    Object.assign(this.counts, { durations: 0, enqueueDurations: 0, rows: [...this.rows()].length });
  }

  private *flows(): Iterable<FlowCell> {
    for (const { flows } of this.priorities()) yield* flows.values();
  }

  private cellOf(priority: number): PriorityCell {
    if (priority === this.lastPriority) return this.lastCell;
    this.lastPriority = priority;
    const known = this.cells.get(priority);
    if (known !== undefined || this.cells.size >= this.most) this.lastCell = known ?? this.otherPriorities;
    else this.lastCell = put(this.cells, priority, cellOf(String(priority)));
    return this.lastCell;
  }

  private flowOf(cell: PriorityCell, fairnessId: string): FlowCell {
    const { fairnessIds } = this.common;
    if (fairnessIds === undefined) return this.flowNamed(cell, '');
    return cell.flows.get(fairnessId) ?? this.flowNamed(cell, fairnessIds.of(fairnessId));
  }

  /** `name` is empty where fairness IDs are not told. */
  private flowNamed({ flows, label: priority }: PriorityCell, name: string): FlowCell {
    const known = flows.get(name);
    if (known !== undefined) return known;
    const labels: Labels = this.common.fairnessIds === undefined ? { priority } : { fairness_id: name, priority };
    return put(flows, name, new FlowCell(labels));
  }

  /** The flow that a new series goes to: its own, or when there are too many the one that is shared. */
  private ownerOf(kind: SeriesKind | 'rows', cell: PriorityCell, flow: FlowCell, models: Models): [FlowCell, Models] {
    if (this.counts[kind] < this.common.maxSeries) return [flow, models];
    const shared = this.flowNamed(cell, this.common.fairnessIds === undefined ? '' : otherLabel);
    return [shared, models === noModels ? noModels : otherModels];
  }

  private newSeries(
    kind: SeriesKind,
    cell: PriorityCell,
    flow: FlowCell,
    outcome: OutcomeType | 'NotYetFinalized',
    models: Models,
  ): DurationHistogram {
    const [owner, named] = this.ownerOf(kind, cell, flow, models);
    const known = owner[kind].get(keyOf(outcome, named));
    if (known !== undefined) return known;
    const series =
      kind === 'durations'
        ? new DurationHistogram({ ...this.rowIn(owner, named).labels, outcome }, this.queueDurationBuckets)
        : new DurationHistogram({ ...owner.labels, outcome, ...this.common.poolIfNamed }, cycleDurationBuckets);
    this.counts[kind]++;
    if (kind === 'durations' && named === noModels && outcome === 'Dispatched') owner.dispatched = series;
    return put(owner[kind], keyOf(outcome, named), series);
  }

  private rowIn(flow: FlowCell, { key, model, target }: Models): QueueRow {
    const known = flow.rows.get(key);
    if (known !== undefined) return known;
    const labels = { ...flow.labels, ...this.common.pool, model_name: model, target_model_name: target };
    this.counts.rows++;
    return put(flow.rows, key, { labels, requests: 0, bytes: 0 });
  }
}

function keyOf(outcome: string, models: Models): string {
  return models === noModels ? outcome : `${outcome} ${models.key}`;
}
