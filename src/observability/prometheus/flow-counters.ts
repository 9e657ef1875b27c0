/**
 * Counts what events tell, by priority, flow and outcome, and keeps the rows of what waits. O(1) for each event: for
 * most of them one map lookup and two increments.
 *
 * Invariant: at most 100 priorities beside the configured ones, and in each as many flows as the guard admits; at most
 * `maxSeries` series of each histogram and as many rows, whichever flows, models and outcomes they are for; the rest is
 * `other`.
 */
import { type BoundedLabel, otherLabel } from '../../base/bounded-label.js';
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
  readonly fairnessId: string;
  readonly priority: string;
  /** By outcome, and by models where somebody names them. */
  readonly durations: Map<string, DurationHistogram> = new Map();
  /** By outcome, `NotYetFinalized` for requests that wait. */
  readonly enqueueDurations: Map<string, DurationHistogram> = new Map();
  /** By models: a row for each that was heard of, or has something waiting. */
  readonly rows: Map<string, QueueRow> = new Map();
  /** The one of `durations` that nearly every request goes to: dispatched, no model named. */
  dispatched: DurationHistogram | undefined = undefined;

  constructor(fairnessId: string, priority: string) {
    this.fairnessId = fairnessId;
    this.priority = priority;
  }

  forgetDurations(): void {
    this.durations.clear();
    this.enqueueDurations.clear();
    this.dispatched = undefined;
    for (const [models, { requests }] of this.rows) if (requests === 0) this.rows.delete(models);
  }
}

class PriorityCell {
  readonly label: string;
  readonly outcomes: OutcomeCounts = { ...noOutcomes };
  readonly flows: Map<string, FlowCell> = new Map();

  constructor(label: string) {
    this.label = label;
  }
}

export interface TallyOptions {
  /** Undefined: all flows of a priority are one. */
  readonly fairnessIds: BoundedLabel | undefined;
  /** On every series that has the label `inference_pool`, and on the others. */
  readonly constant: Labels;
  readonly constantIfNamed: Labels;
  /** Priorities that are kept apart whatever comes. */
  readonly configured: readonly number[];
  /** Of each histogram, and rows; what is shared as `other` comes on top. */
  readonly maxSeries: number;
  readonly queueDurationBuckets: readonly number[];
}

export class FlowCounters {
  readonly cycles: DurationHistogram;
  private readonly cells = new Map<number, PriorityCell>();
  private readonly otherPriorities = new PriorityCell(otherLabel);
  /** The priority that came last, which often comes again. */
  private lastPriority = Number.NaN;
  private lastCell = this.otherPriorities;
  private readonly most: number;
  private readonly maxSeries: number;
  private readonly buckets: readonly number[];
  /** The numbers of series and rows in all cells together. */
  private series = 0;
  private enqueueSeries = 0;
  private rowCount = 0;
  private readonly fairnessIds: BoundedLabel | undefined;
  private readonly constant: Labels;
  private readonly constantIfNamed: Labels;

  constructor({ fairnessIds, constant, constantIfNamed, configured, maxSeries, queueDurationBuckets }: TallyOptions) {
    this.maxSeries = maxSeries;
    this.buckets = queueDurationBuckets;
    this.constantIfNamed = constantIfNamed;
    this.cycles = new DurationHistogram(constantIfNamed, cycleDurationBuckets);
    this.fairnessIds = fairnessIds;
    this.constant = constant;
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
    const key = models === noModels ? outcome : `${outcome} ${models.key}`;
    (flow.durations.get(key) ?? this.seriesFor(cell, flow, key, outcome, models)).observe(queuedMs / 1000);
  }

  enqueued(fairnessId: string, priority: number, outcome: OutcomeType | 'NotYetFinalized', durationMs: number): void {
    const cell = this.cellOf(priority);
    const flow = this.flowOf(cell, fairnessId);
    (flow.enqueueDurations.get(outcome) ?? this.enqueueSeriesFor(cell, flow, outcome)).observe(durationMs / 1000);
  }

  /** The series of a flow end; what several flows share stays. */
  flowRemoved(fairnessId: string, priority: number): void {
    const flows = this.cells.get(priority)?.flows;
    const flow = fairnessId === otherLabel ? undefined : flows?.get(fairnessId);
    if (flow === undefined) return;
    this.series -= flow.durations.size;
    this.enqueueSeries -= flow.enqueueDurations.size;
    this.rowCount -= flow.rows.size;
    flows?.delete(fairnessId);
  }

  /** Counts by priority, each outcome from 0 on. */
  *outcomes(): Iterable<{ readonly label: string; readonly outcomes: Readonly<OutcomeCounts> }> {
    for (const cell of this.allCells()) yield cell;
  }

  *durations(): Iterable<DurationHistogram> {
    for (const { flows } of this.allCells()) for (const { durations } of flows.values()) yield* durations.values();
  }

  *enqueueDurations(): Iterable<DurationHistogram> {
    for (const { flows } of this.allCells())
      for (const { enqueueDurations } of flows.values()) yield* enqueueDurations.values();
  }

  /** Waiting requests of every flow that was heard of, by models. */
  *rows(): Iterable<QueueRow> {
    for (const { flows } of this.allCells()) for (const { rows } of flows.values()) yield* rows.values();
  }

  /** The row of a flow under its label, made when missing. */
  rowOf(label: string, priority: number, models: Models): QueueRow {
    const cell = this.cellOf(priority);
    const flow = cell.flows.get(label) ?? this.newFlow(cell.flows, label, cell.label);
    return flow.rows.get(models.key) ?? this.rowFor(cell, flow, models);
  }

  resetOutcomes(): void {
    for (const { outcomes } of this.allCells()) Object.assign(outcomes, noOutcomes);
  }

  /** Forgets the flows, except the rows of what waits. */
  resetDurations(): void {
    for (const { flows } of this.allCells()) {
      for (const [label, flow] of flows) {
        flow.forgetDurations();
        if (flow.rows.size === 0) flows.delete(label);
      }
    }
    this.series = 0;
    this.enqueueSeries = 0;
    this.rowCount = [...this.rows()].length;
  }

  private *allCells(): Iterable<PriorityCell> {
    yield* this.cells.values();
    if (this.cells.size >= this.most) yield this.otherPriorities;
  }

  private cellOf(priority: number): PriorityCell {
    if (priority === this.lastPriority) return this.lastCell;
    this.lastPriority = priority;
    this.lastCell = this.cells.get(priority) ?? this.newCell(priority);
    return this.lastCell;
  }

  private newCell(priority: number): PriorityCell {
    if (this.cells.size >= this.most) return this.otherPriorities;
    const cell = new PriorityCell(String(priority));
    this.cells.set(priority, cell);
    return cell;
  }

  private flowOf({ flows, label }: PriorityCell, fairnessId: string): FlowCell {
    if (this.fairnessIds === undefined) return flows.get('') ?? this.newFlow(flows, '', label);
    const known = flows.get(fairnessId);
    if (known !== undefined) return known;
    const kept = this.fairnessIds.of(fairnessId);
    return flows.get(kept) ?? this.newFlow(flows, kept, label);
  }

  private newFlow(flows: Map<string, FlowCell>, fairnessId: string, priority: string): FlowCell {
    const flow = new FlowCell(fairnessId, priority);
    flows.set(fairnessId, flow);
    return flow;
  }

  /** The series of its own, or when there are too many the one that is shared. */
  private seriesFor(
    cell: PriorityCell,
    flow: FlowCell,
    key: string,
    outcome: OutcomeType,
    models: Models,
  ): DurationHistogram {
    if (this.series < this.maxSeries) return this.newSeries(flow, key, outcome, models);
    const shared = models === noModels ? noModels : otherModels;
    const sharedKey = models === noModels ? outcome : `${outcome} ${shared.key}`;
    const other = this.otherFlow(cell);
    return other.durations.get(sharedKey) ?? this.newSeries(other, sharedKey, outcome, shared);
  }

  private enqueueSeriesFor(cell: PriorityCell, flow: FlowCell, outcome: string): DurationHistogram {
    if (this.enqueueSeries < this.maxSeries) return this.newEnqueueSeries(flow, outcome);
    const other = this.otherFlow(cell);
    return other.enqueueDurations.get(outcome) ?? this.newEnqueueSeries(other, outcome);
  }

  private rowFor(cell: PriorityCell, flow: FlowCell, models: Models): QueueRow {
    if (this.rowCount < this.maxSeries) return this.newRow(flow, models);
    const shared = models === noModels ? noModels : otherModels;
    const other = this.otherFlow(cell);
    return other.rows.get(shared.key) ?? this.newRow(other, shared);
  }

  private otherFlow({ flows, label }: PriorityCell): FlowCell {
    const name = this.fairnessIds === undefined ? '' : otherLabel;
    return flows.get(name) ?? this.newFlow(flows, name, label);
  }

  private newSeries(flow: FlowCell, key: string, outcome: OutcomeType, models: Models): DurationHistogram {
    const { labels } = flow.rows.get(models.key) ?? this.newRow(flow, models);
    const series = new DurationHistogram({ ...labels, outcome }, this.buckets);
    flow.durations.set(key, series);
    this.series++;
    if (models === noModels && outcome === 'Dispatched') flow.dispatched = series;
    return series;
  }

  private newEnqueueSeries(flow: FlowCell, outcome: string): DurationHistogram {
    const fairness = this.fairnessIds === undefined ? {} : { fairness_id: flow.fairnessId };
    const labels = { ...fairness, priority: flow.priority, outcome, ...this.constantIfNamed };
    const series = new DurationHistogram(labels, cycleDurationBuckets);
    flow.enqueueDurations.set(outcome, series);
    this.enqueueSeries++;
    return series;
  }

  private newRow(flow: FlowCell, { key, model, target }: Models): QueueRow {
    const fairness = this.fairnessIds === undefined ? {} : { fairness_id: flow.fairnessId };
    const labels = {
      ...fairness,
      priority: flow.priority,
      ...this.constant,
      model_name: model,
      target_model_name: target,
    };
    const row = { labels, requests: 0, bytes: 0 };
    flow.rows.set(key, row);
    this.rowCount++;
    return row;
  }
}
