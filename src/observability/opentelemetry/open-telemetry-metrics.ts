/** A controller's metrics for OpenTelemetry: durations and counts as they happen, gauges when they are collected. */
import type { Attributes, BatchObservableResult, Histogram, Meter, MeterProvider } from '@opentelemetry/api';
import { metrics } from '@opentelemetry/api';
import { BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import * as s from '../../base/schema/schema.js';
import type { Drop, FlowRequest, Lease } from '../../index.js';
import { bucketBounds } from '../metrics/duration-buckets.js';
import { FlowRows } from '../metrics/flow-rows.js';
import { modelIn, type Observation, type ObservedFlow } from '../metrics/labelled-flows.js';
import { genAiAttributes } from './gen-ai.js';
import * as instruments from './instruments.js';
import { observables, type Readings, ZeroFilledSeries } from './observables.js';

const { attributes } = instruments;
/** Priorities kept apart; the rest is `other`. */
const mostPriorities = 100;
/** Models kept apart, with operations and providers; the rest is `other`. */
const mostModels = 1000;

export interface OpenTelemetryMetricsOptions {
  /** Makes the instruments. @default the meter `headgate` of `meterProvider` */
  meter?: Meter | undefined;
  /** @default the global one */
  meterProvider?: MeterProvider | undefined;
  /** Value of the attribute `flow_control.pool`; tells controllers apart that share a meter. @default not there */
  pool?: string | undefined;
  /** Whether metrics have the attribute `flow_control.fairness_id`: many series, names of tenants. @default false */
  fairnessIdAttribute?: boolean | undefined;
  /**
   * Upper bounds of the histogram of waits. Each is one count more of each series. A view of the SDK goes before it.
   * @default 21 from 0.0001 to 60
   */
  queueDurationBuckets?: readonly number[] | undefined;
  /** The model of a request. @default its field `model` */
  modelOf?: ((request: never) => string | undefined) | undefined;
  /** Fairness IDs kept apart, the first that come; the rest is `other`. An integer from 1 up. @default 1000 */
  maxFairnessIds?: number | undefined;
}

const optionsSchema = s.object({
  meter: s.optional(s.objectWith<Meter>('a Meter', 'createHistogram', 'addBatchObservableCallback')),
  meterProvider: s.optional(s.objectWith<MeterProvider>('a MeterProvider', 'getMeter')),
  pool: s.optional(s.value('text', (given): given is string => typeof given === 'string')),
  fairnessIdAttribute: s.optional(s.flag()),
  queueDurationBuckets: s.optional(bucketBounds),
  modelOf: s.optional(s.callable<(request: never) => string | undefined>()),
  maxFairnessIds: s.optional(s.positiveInteger()),
} satisfies Record<keyof OpenTelemetryMetricsOptions, unknown>);

/**
 * Records the metrics of a controller, from now on. @throws FlowConfigError that lists every problem
 * @example const metrics = openTelemetryMetrics(flow, { meterProvider });
 */
export function openTelemetryMetrics<R extends FlowRequest>(
  flow: ObservedFlow<R>,
  options: OpenTelemetryMetricsOptions = {},
): Observation {
  s.parse(optionsSchema, options, 'openTelemetryMetrics');
  const { pool, fairnessIdAttribute = false, maxFairnessIds = 1000, meterProvider = metrics } = options;
  const { meter = meterProvider.getMeter('headgate') } = options;
  const constant: Attributes = pool === undefined ? {} : { [attributes.pool]: pool };
  const fairnessIds = fairnessIdAttribute ? new BoundedLabel(maxFairnessIds) : undefined;

  const priorities = new BoundedLabel(mostPriorities);
  const bandAttributes = (priority: number): Attributes => ({
    ...constant,
    [attributes.priority]: priorities.of(String(priority)) === otherLabel ? otherLabel : priority,
  });

  const histogram = (told: instruments.Instrument): Histogram => meter.createHistogram(told.name, told);
  const { queueDurationBuckets: bounds } = options;
  const advised = bounds && { advice: { explicitBucketBoundaries: [...bounds] } };
  const durations = histogram({ ...instruments.queueDuration, ...advised });
  const requests = meter.createCounter(instruments.requests.name, instruments.requests);
  const settled = (fairnessId: string, priority: number, outcome: string, queuedMs: number, drop?: Drop): void => {
    const ending: Attributes = { [attributes.outcome]: outcome, ...(drop && { [attributes.reason]: drop.reason }) };
    const fairness = fairnessIds && { [attributes.fairnessId]: fairnessIds.of(fairnessId) };
    durations.record(queuedMs / 1000, { ...bandAttributes(priority), ...fairness, ...ending });
    requests.add(1, { ...bandAttributes(priority), ...ending });
  };

  const firstTokens = histogram(instruments.timeToFirstToken);
  const served = histogram(instruments.requestDuration);
  const tokenTimes = histogram(instruments.timePerOutputToken);
  const models = new BoundedLabel(mostModels);
  const modelOf: (request: never) => string | undefined = options.modelOf ?? modelIn;
  /** The payload of a request may be gone when its first token comes. */
  const askedFor = new WeakMap<Lease, { readonly of: Attributes; tokens: number; afterMs: number }>();

  const stopObserving = observeFigures(meter, flow, { constant, flows: new FlowRows(fairnessIds), bandAttributes });
  const listeners = [
    flow.on('dispatched', ({ item, lease, queuedMs }) => {
      settled(item.fairnessId, item.priority, 'Dispatched', queuedMs);
      const model = modelOf(item.request as never);
      const named = genAiAttributes(item.request, (value) => models.of(value));
      const modelName = model !== undefined && { [attributes.model]: models.of(model) };
      askedFor.set(lease, { of: { ...constant, ...named, ...modelName }, tokens: Infinity, afterMs: 0 });
    }),
    flow.on('firstToken', ({ lease, afterMs }) => {
      const asked = askedFor.get(lease);
      firstTokens.record(afterMs / 1000, asked?.of ?? constant);
      // The first report of tokens; of an answer that comes whole it is the last one, too.
      Object.assign(asked ?? {}, { tokens: lease.usage.completionTokens, afterMs });
    }),
    flow.on('released', ({ lease, heldMs, usage: { completionTokens } }) => {
      const asked = askedFor.get(lease);
      if (asked === undefined) return;
      const { of, tokens, afterMs } = asked;
      served.record(heldMs / 1000, lease.isEvicted ? { ...of, [attributes.reason]: 'evicted' } : of);
      if (completionTokens > tokens && !lease.isEvicted)
        tokenTimes.record((heldMs - afterMs) / 1000 / (completionTokens - tokens), of);
    }),
    flow.on('dropped', ({ outcome }) =>
      settled(outcome.fairnessId, outcome.priority, outcome.type, outcome.queuedMs, outcome),
    ),
  ];
  return {
    stop() {
      for (const stop of listeners) stop();
      stopObserving();
    },
  };
}

/** Returns what stops it. */
function observeFigures(meter: Meter, flow: Pick<ObservedFlow, 'figures'>, readings: Readings): () => void {
  const made = observables.map(({ make, read, hasRows }) => ({
    instrument: make(meter),
    read,
    rows: hasRows ? new ZeroFilledSeries() : undefined,
  }));
  const observe = (result: BatchObservableResult): void => {
    const taken = flow.figures();
    for (const { instrument, read, rows } of made) {
      const figures = read(taken, readings);
      for (const [figure, of] of rows?.with(figures) ?? figures) result.observe(instrument, figure, of);
    }
  };
  const observed = made.map(({ instrument }) => instrument);
  meter.addBatchObservableCallback(observe, observed);
  return () => meter.removeBatchObservableCallback(observe, observed);
}
