/** One controller as a scrape sees it, read once for all metrics, never what waits. Invariant: gauges cannot drift. */
import { BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import { put } from '../../base/put.js';
import type { ControllerFigures, FlowRequest, ItemView, Lease, SaturationDetector } from '../../index.js';
import { queueDurationBuckets as defaultBuckets, revocationBuckets } from '../metrics/duration-buckets.js';
import { FlowRows } from '../metrics/flow-rows.js';
import { eachLabelledFlow, type ObservedFlow } from '../metrics/labelled-flows.js';
import { DurationHistogram } from './duration-histogram.js';
import { FlowCounters, type QueueRow, type SeriesLabels } from './flow-counters.js';
import { ModelLabels, ModelRejections, noModels } from './model-labels.js';
import type { PrometheusMetricsOptions } from './options.js';
import type { Labels } from './scraped-metric.js';

/** What the metrics read of a meter, whatever its requests are. */
export type FlowReadings = Omit<FlowMeter<never>, 'stop'>;

export interface InFlightRow {
  readonly labels: Labels;
  requests: number;
  tokens: number;
}

type Running = ControllerFigures['stats']['inFlightByFlow'][number] & { readonly endpoint?: string };

export class FlowMeter<R extends FlowRequest> implements SeriesLabels {
  readonly pool: Labels;
  readonly poolIfNamed: Labels;
  readonly tally: FlowCounters;
  readonly modelRejections: ModelRejections | undefined;
  /** Running requests that were asked to leave, and gave their seats up. */
  confirmedVictims = 0;
  /** How long each of them took to do so. */
  readonly confirmations: DurationHistogram;
  /** Since when. */
  private readonly leaving = new Map<Lease, number>();
  /** Set while somebody is to leave: `released` comes for every request. */
  private stopHearingReleases: (() => void) | undefined = undefined;
  private readonly flow: ObservedFlow<R>;
  private readonly models: ModelLabels<R>;
  /** The rows of waiting requests, where models are named. Weak: a Map would keep requests as `LinkedList` says. */
  private readonly rowsOfItems = new WeakMap<ItemView, QueueRow>();
  readonly fairnessIds: BoundedLabel | undefined;
  readonly detectors: () => readonly SaturationDetector[];
  private readonly stops: readonly (() => void)[];
  readonly maxSeries: number;
  readonly flows: FlowRows;
  private taken: ControllerFigures | undefined;

  constructor(flow: ObservedFlow<R>, options: Omit<PrometheusMetricsOptions<R>, 'register'>) {
    const {
      inferencePool = '',
      fairnessIdLabel = true,
      maxFairnessIds = 1000,
      maxSeries = 1000,
      queueDurationBuckets = defaultBuckets,
      pinnedFairnessIds,
      dynamo,
    } = options;
    this.flow = flow;
    this.maxSeries = maxSeries;
    this.pool = { inference_pool: inferencePool };
    this.poolIfNamed = inferencePool === '' ? {} : this.pool;
    this.confirmations = new DurationHistogram(this.pool, revocationBuckets);
    const { detectors = [] } = options;
    this.detectors = typeof detectors === 'function' ? detectors : () => detectors;
    this.fairnessIds = fairnessIdLabel ? new BoundedLabel(maxFairnessIds, pinnedFairnessIds) : undefined;
    this.flows = new FlowRows(this.fairnessIds);
    const configured = flow.figures().bands.flatMap((band) => (band.isConfigured ? [band.priority] : []));
    this.tally = new FlowCounters(this, configured, [...queueDurationBuckets]);
    this.models = new ModelLabels<R>(options.modelName, options.targetModelName);
    const rejections = dynamo && new ModelRejections<R>(this.models, dynamo.endpoint, this.poolIfNamed);
    this.modelRejections = rejections;
    this.stops = [
      () => this.stopHearingReleases?.(),
      ...this.count(),
      ...(this.models.areNamed ? this.followModels() : []),
      ...(rejections ? [flow.on('dropped', (drop) => rejections.dropped(drop.request as R, drop.outcome))] : []),
    ];
  }

  stop(): void {
    for (const stop of this.stops) stop();
  }

  /** The same for everything that is read in this turn; a registry reads all its metrics in one. O(bands + labels). */
  get figures(): ControllerFigures {
    if (this.taken === undefined) {
      this.taken = this.flow.figures();
      if (!this.models.areNamed) this.fillRows(this.taken);
      queueMicrotask(() => {
        this.taken = undefined;
      });
    }
    return this.taken;
  }

  /** 0 for flows that were heard of and have nothing waiting. */
  queueRows(): Iterable<QueueRow> {
    void this.figures; // fills the rows
    return this.tally.rows();
  }

  /** Running requests by their labels. What exceeds `most` is in one row for each priority, `other`. */
  rowsOf(running: Iterable<Running>, most: number): Iterable<InFlightRow> {
    const rows = new Map<string, InFlightRow>();
    for (const { fairnessId, priority, endpoint, inFlight, inFlightTokens } of running) {
      const own = this.fairnessIds?.of(fairnessId) ?? '';
      const hasRoom = rows.size < most || rows.has(`${priority} ${own} ${endpoint}`);
      const [label, at] = hasRoom ? [own, endpoint] : [otherLabel, otherLabel];
      const fairness = this.fairnessIds && { fairness_id: label };
      const endpointName = at !== undefined && { endpoint_name: at };
      const labels = { ...endpointName, ...fairness, priority: String(priority), ...this.pool };
      const key = `${priority} ${label} ${at}`;
      const row = rows.get(key) ?? put(rows, key, { labels, requests: 0, tokens: 0 });
      row.requests += inFlight;
      row.tokens += inFlightTokens;
    }
    return rows.values();
  }

  /** Where models are named, the events keep the rows. */
  private fillRows({ bands }: ControllerFigures): void {
    const { tally, fairnessIds } = this;
    for (const row of tally.rows()) {
      row.requests = 0;
      row.bytes = 0;
    }
    for (const band of bands) {
      eachLabelledFlow(band, fairnessIds, (label, { waiting, waitingBytes }) => {
        const row = tally.rowOf(label, band.priority, noModels);
        row.requests += waiting;
        row.bytes += waitingBytes;
      });
    }
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
      flow.on('evicted', ({ lease }) => this.toLeave(lease)),
      flow.on('flowRemoved', ({ fairnessId, priority }) => tally.flowRemoved(fairnessId, priority)),
    ];
  }

  private toLeave(lease: Lease): void {
    this.leaving.set(lease, performance.now());
    this.stopHearingReleases ??= this.flow.on('released', ({ lease: released }) => {
      const sinceMs = this.leaving.get(released);
      if (sinceMs === undefined) return;
      this.leaving.delete(released);
      this.confirmedVictims++;
      this.confirmations.observe((performance.now() - sinceMs) / 1_000);
      if (this.leaving.size > 0) return;
      this.stopHearingReleases?.();
      this.stopHearingReleases = undefined;
    });
  }

  /** The controller knows flows, not models: which row a waiting request is counted in is remembered here. */
  private followModels(): (() => void)[] {
    const { flow, models, tally, fairnessIds, rowsOfItems } = this;
    const left = ({ item }: { readonly item: ItemView }): void => {
      const row = rowsOfItems.get(item);
      if (row === undefined) return;
      rowsOfItems.delete(item);
      row.requests--;
      row.bytes -= item.byteSize;
    };
    return [
      flow.on('queued', ({ item }) => {
        const row = tally.rowOf(fairnessIds?.of(item.fairnessId) ?? '', item.priority, models.of(item.request));
        rowsOfItems.set(item, row);
        row.requests++;
        row.bytes += item.byteSize;
      }),
      flow.on('dispatched', left),
      flow.on('dropped', left),
    ];
  }
}
