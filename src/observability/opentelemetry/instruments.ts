/** Attributes, and the instruments that are written to. Source: OpenTelemetry semantic conventions 1.44, naming. */
import type { MetricOptions } from '@opentelemetry/api';
import { queueDurationBuckets } from '../metrics/duration-buckets.js';

export interface Instrument extends MetricOptions {
  readonly name: string;
  readonly description: string;
  readonly unit: string;
}

export const queueDuration: Instrument = {
  name: 'flow_control.queue.duration',
  description: 'Time requests spend in the flow control layer.',
  unit: 's',
  advice: { explicitBucketBoundaries: [...queueDurationBuckets] },
};

export const requests: Instrument = {
  name: 'flow_control.requests',
  description: 'Requests by what became of them.',
  unit: '{request}',
};

/** Those of the catalogue's rows under the names of its labels. */
export const attributes = {
  outcome: 'flow_control.outcome',
  priority: 'flow_control.priority',
  fairnessId: 'flow_control.fairness_id',
  /** `requests` or `bytes`. */
  resource: 'flow_control.resource',
  endpoint: 'flow_control.endpoint',
  dimension: 'flow_control.dimension',
  pool: 'flow_control.pool',
  /** The group that shares a quota. */
  group: 'flow_control.quota.group',
  unit: 'flow_control.quota.unit',
  /** The span of a quota, seconds. */
  per: 'flow_control.quota.per',
  /** True for a quota that answers told of. */
  learnt: 'flow_control.quota.learnt',
  /** `running`, `idle` or `waiting`. */
  state: 'flow_control.session.state',
  /** Waiting requests of the band when this one came, itself included. */
  queuePosition: 'flow_control.queue.position',
  reason: 'error.type',
} as const;

/** The span of a request that waits. */
export const waitSpan = 'flow_control.wait';
