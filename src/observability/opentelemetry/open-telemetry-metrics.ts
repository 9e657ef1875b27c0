/** A controller's metrics for OpenTelemetry: durations and counts as they happen, gauges when they are collected. */
import type { Attributes, BatchObservableResult, Meter, MeterProvider } from '@opentelemetry/api';
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
  const flowAttributes = (fairnessId: string, priority: number): Attributes => ({
    ...bandAttributes(priority),
    ...(fairnessIds && { [attributes.fairnessId]: fairnessIds.of(fairnessId) }),
  });

  const { queueDurationBuckets } = options;
  const durations = meter.createHistogram(instruments.queueDuration.name, {
    ...instruments.queueDuration,
    ...(queueDurationBuckets && { advice: { explicitBucketBoundaries: [...queueDurationBuckets] } }),
  });
  const requests = meter.createCounter(instruments.requests.name, instruments.requests);
  const settled = (fairnessId: string, priority: number, outcome: string, queuedMs: number, drop?: Drop): void => {
    const ending: Attributes = { [attributes.outcome]: outcome, ...(drop && { [attributes.reason]: drop.reason }) };
    durations.record(queuedMs / 1000, { ...flowAttributes(fairnessId, priority), ...ending });
    requests.add(1, { ...bandAttributes(priority), ...ending });
  };

  const firstTokens = meter.createHistogram(instruments.timeToFirstToken.name, instruments.timeToFirstToken);
  const models = new BoundedLabel(mostModels);
  const modelOf: (request: never) => string | undefined = options.modelOf ?? modelIn;
  /** The payload of a request may be gone when its first token comes. */
  const askedFor = new WeakMap<Lease, Attributes>();

  const readings: Readings = { constant, flows: new FlowRows(fairnessIds), bandAttributes };
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
  const listeners = [
    flow.on('dispatched', ({ item, lease, queuedMs }) => {
      settled(item.fairnessId, item.priority, 'Dispatched', queuedMs);
      const model = modelOf(item.request as never);
      const named = genAiAttributes(item.request, (value) => models.of(value));
      askedFor.set(lease, { ...named, ...(model !== undefined && { [attributes.model]: models.of(model) }) });
    }),
    flow.on('firstToken', ({ lease, afterMs }) =>
      firstTokens.record(afterMs / 1000, { ...constant, ...askedFor.get(lease) }),
    ),
    flow.on('dropped', ({ outcome }) =>
      settled(outcome.fairnessId, outcome.priority, outcome.type, outcome.queuedMs, outcome),
    ),
  ];
  return {
    stop() {
      for (const stop of listeners) stop();
      meter.removeBatchObservableCallback(observe, observed);
    },
  };
}
