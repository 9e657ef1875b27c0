/**
 * Attributes, and the instruments that are written to. Source: OpenTelemetry semantic conventions 1.44, naming; those
 * of generative AI, in a repository of their own (semantic-conventions-genai): gen-ai-metrics.md, gen-ai-spans.md.
 */

import type { MetricOptions } from '@opentelemetry/api';
import { queueDurationBuckets } from '../metrics/duration-buckets.js';

export interface Instrument extends MetricOptions {
  readonly name: string;
  readonly description: string;
  readonly unit: string;
}

function seconds(name: string, description: string, bounds: readonly number[]): Instrument {
  return { name, description, unit: 's', advice: { explicitBucketBoundaries: [...bounds] } };
}

export const queueDuration: Instrument = seconds(
  'flow_control.queue.duration',
  'Time requests spend in the flow control layer.',
  queueDurationBuckets,
);

export const requests: Instrument = {
  name: 'flow_control.requests',
  description: 'Requests by what became of them.',
  unit: '{request}',
};

/** The bounds of these three are those that the conventions advise. */
export const timeToFirstToken: Instrument = seconds(
  'gen_ai.server.time_to_first_token',
  'From the dispatch of a request to its first token, by the reports of its lease.',
  [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
);

export const requestDuration: Instrument = seconds(
  'gen_ai.server.request.duration',
  'From the dispatch of a request to the end of its lease.',
  [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
);

export const timePerOutputToken: Instrument = seconds(
  'gen_ai.server.time_per_output_token',
  'Of each token after the first report of some, to the end of the lease.',
  [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5],
);

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
  detector: 'flow_control.detector',
  /** `prefill` or `decode`. */
  stage: 'flow_control.stage',
  reason: 'error.type',
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  model: 'gen_ai.request.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  /** From dispatch, seconds. */
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  /** Of the span of a request: seconds, and the same position. */
  waited: 'headgate.queue.duration',
  cameAt: 'headgate.queue.position',
} as const;

/** The span of a request that waits, and that of every request. */
export const waitSpan = 'flow_control.wait';
export const requestSpan = 'flow_control.request';
