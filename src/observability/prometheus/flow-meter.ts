/**
 * One controller as a scrape sees it: its tally of events, and its state, read once for all metrics of a scrape.
 *
 * Invariant: gauges are what the controller says of itself, so that they cannot drift.
 */

import { BoundedLabel } from '../../base/bounded-label.js';
import type { ControllerSnapshot, FlowDemand, FlowRequest, ItemView, SaturationDetector } from '../../index.js';
import type { ObservedFlow } from '../metrics/observed-flow.js';
import { FlowCounters } from './flow-counters.js';
import { ModelLabels, type Models, noModels } from './model-labels.js';
import { ModelRejections } from './model-rejections.js';
import type { PrometheusMetricsOptions } from './options.js';
import type { Labels } from './scraped-metric.js';
import { Victims } from './victims.js';

/** What waits under one set of labels. */
export interface QueueRow {
  readonly labels: Labels;
  requests: number;
  bytes: number;
}

/** What metrics are made from. */
export interface FlowReadings {
  /** On metrics that have the label in any case. */
  readonly pool: Labels;
  /** On the others: empty unless the pool has a name. */
  readonly poolIfNamed: Labels;
  readonly detectors: readonly SaturationDetector[];
  readonly tally: FlowCounters;
  readonly victims: Victims;
  readonly modelRejections: ModelRejections | undefined;
  readonly snapshot: ControllerSnapshot;
  readonly demand: FlowDemand;
  queueRows(): Iterable<QueueRow>;
}

export class FlowMeter<R extends FlowRequest> implements FlowReadings {
  readonly pool: Labels;
  readonly poolIfNamed: Labels;
  readonly tally: FlowCounters;
  readonly modelRejections: ModelRejections | undefined;
  readonly victims: Victims;
  private readonly flow: ObservedFlow<R>;
  private readonly models: ModelLabels<R>;
  private readonly waitingModels = new Map<ItemView, Models>();
  private readonly hasFairnessIds: boolean;
  private readonly listDetectors: () => readonly SaturationDetector[];
  private readonly stops: readonly (() => void)[];
  private state: { readonly snapshot: ControllerSnapshot; readonly demand: FlowDemand } | undefined;

  constructor(flow: ObservedFlow<R>, options: Omit<PrometheusMetricsOptions<R>, 'register'>) {
    const { inferencePool = '', fairnessIdLabel = true, maxFairnessIds = 1000, pinnedFairnessIds, dynamo } = options;
    this.flow = flow;
    this.pool = { inference_pool: inferencePool };
    this.poolIfNamed = inferencePool === '' ? {} : this.pool;
    const { detectors = [] } = options;
    this.listDetectors = typeof detectors === 'function' ? detectors : () => detectors;
    this.hasFairnessIds = fairnessIdLabel;
    const configured = flow.snapshot().bands.filter(({ isConfigured }) => isConfigured);
    this.tally = new FlowCounters({
      fairnessIds: fairnessIdLabel ? new BoundedLabel(maxFairnessIds, pinnedFairnessIds) : undefined,
      constant: this.pool,
      constantIfNamed: this.poolIfNamed,
      configured: configured.map(({ priority }) => priority),
    });
    this.models = new ModelLabels<R>(options.modelName, options.targetModelName);
    const rejections = dynamo === undefined ? undefined : new ModelRejections<R>(this.models, dynamo.endpoint, this.poolIfNamed);
    this.modelRejections = rejections;
    this.victims = new Victims((listener) => flow.on('released', ({ lease }) => listener(lease)));
    this.stops = [
      () => this.victims.stop(),
      ...this.count(),
      ...(this.models.areNamed ? this.followModels() : []),
      ...(rejections === undefined ? [] : [flow.on('dropped', ({ request, outcome }) => rejections.dropped(request as R, outcome))]),
    ];
  }

  stop(): void {
    for (const stop of this.stops) stop();
  }

  get detectors(): readonly SaturationDetector[] {
    return this.listDetectors();
  }

  get snapshot(): ControllerSnapshot {
    return this.read().snapshot;
  }

  get demand(): FlowDemand {
    return this.read().demand;
  }

  /** The same for everything that is read in this turn; a registry reads all its metrics in one. O(waiting). */
  private read(): NonNullable<typeof this.state> {
    if (this.state === undefined) {
      const demand = this.flow.demand(); // asks the detector, so it comes first
      this.state = { demand, snapshot: this.flow.snapshot() };
      queueMicrotask(() => {
        this.state = undefined;
      });
    }
    return this.state;
  }

  /** 0 for flows that were heard of and have nothing waiting. */
  queueRows(): Iterable<QueueRow> {
    const rows = new Map<string, QueueRow>();
    const add = (labels: Labels, requests: number, bytes: number): void => {
      const key = Object.values(labels).join('\u0000');
      const row = rows.get(key) ?? { labels, requests: 0, bytes: 0 };
      row.requests += requests;
      row.bytes += bytes;
      rows.set(key, row);
    };
    const { tally, hasFairnessIds } = this;
    for (const labels of tally.knownFlows()) add(labels, 0, 0);
    for (const [item, models] of this.waitingModels) add(tally.labelsOf(item.fairnessId, item.priority, models), 1, item.byteSize);
    if (this.models.areNamed) return rows.values();
    for (const { priority, waiting, waitingBytes, activeFlows } of this.snapshot.bands) {
      if (!hasFairnessIds) add(tally.labelsOf('', priority, noModels), waiting, waitingBytes);
      else for (const flow of activeFlows) add(tally.labelsOf(flow.fairnessId, priority, noModels), flow.waiting, flow.waitingBytes);
    }
    return rows.values();
  }

  private count(): (() => void)[] {
    const { tally, flow, models } = this;
    return [
      flow.on('dispatched', ({ item, queuedMs }) => {
        tally.settled(item.fairnessId, item.priority, 'Dispatched', queuedMs, models.of(item.request));
      }),
      flow.on('dropped', ({ request, outcome }) => {
        tally.settled(outcome.fairnessId, outcome.priority, outcome.type, outcome.queuedMs, models.of(request));
      }),
      flow.on('enqueued', ({ fairnessId, priority, outcome, durationMs }) => {
        tally.enqueued(fairnessId, priority, outcome ?? 'NotYetFinalized', durationMs);
      }),
      flow.on('walked', ({ durationMs }) => tally.cycles.observe(durationMs / 1000)),
      flow.on('evicted', ({ lease }) => this.victims.add(lease)),
      flow.on('flowRemoved', ({ fairnessId, priority }) => tally.flowRemoved(fairnessId, priority)),
    ];
  }

  /** The controller knows flows, not models: who waits for which is remembered here. */
  private followModels(): (() => void)[] {
    const { flow, models, waitingModels } = this;
    return [
      flow.on('queued', ({ item }) => waitingModels.set(item, models.of(item.request))),
      flow.on('dispatched', ({ item }) => waitingModels.delete(item)),
      flow.on('dropped', ({ item }) => waitingModels.delete(item)),
    ];
  }
}
