/** The options of `prometheusMetrics`, and their checks. */
import * as s from '../../base/schema/schema.js';
import type { FlowRequest, SaturationDetector } from '../../index.js';
import { bucketBounds } from '../metrics/duration-buckets.js';
import type { MetricsRegister } from './scraped-metric.js';

export interface PrometheusMetricsOptions<R extends FlowRequest = FlowRequest> {
  /** Where the metrics are registered: a `Registry` of prom-client. */
  register: MetricsRegister;
  /** Before every name: `inference_extension_`, `llm_d_epp_`, or your own. @default 'inference_extension_' */
  prefix?: string | undefined;
  /** Value of the label `inference_pool`; tells controllers apart that share a registry. @default '' */
  inferencePool?: string | undefined;
  /** Whether series have the label `fairness_id`. False where fairness IDs are secrets, as API keys. @default true */
  fairnessIdLabel?: boolean | undefined;
  /** Fairness IDs with series of their own, the first that come; others are `other`. From 1 up. @default 1000 */
  maxFairnessIds?: number | undefined;
  /** Series of each histogram, each 5 kB of a scrape; later ones are `other`. From 1 up. @default 1000 */
  maxSeries?: number | undefined;
  /** Upper bounds of the histogram of waits; a line each. @default 21 from 0.0001 to 60 */
  queueDurationBuckets?: readonly number[] | undefined;
  /** Fairness IDs that have series of their own whoever came before. @default [] */
  pinnedFairnessIds?: readonly string[] | undefined;
  /** Value of the label `model_name`. @default '' */
  modelName?: ((request: R) => string) | undefined;
  /** Value of the label `target_model_name`: the model after rewriting. @default '' */
  targetModelName?: ((request: R) => string) | undefined;
  /** Detectors, for the age of reports and for stages; a function is asked at each scrape. @default [] */
  detectors?: readonly SaturationDetector[] | (() => readonly SaturationDetector[]) | undefined;
  /** Adds `dynamo_frontend_model_rejection_total`; `endpoint` names the API, as `chat_completions`. @default without */
  dynamo?: { readonly endpoint?: ((request: R) => string) | undefined } | undefined;
}

const registerMethods = ['registerMetric', 'removeSingleMetric', 'getSingleMetric'] as const;
const aFunction = s.callable<(request: never) => string>();
const aPrefix = s.value('letters, digits and underscores, no digit first', (given): given is string => {
  return typeof given === 'string' && /^(?:[a-zA-Z_]\w*)?$/.test(given);
});
const anyText = s.value('text', (given): given is string => typeof given === 'string');

const areDetectors = (given: unknown): given is object => Array.isArray(given) || typeof given === 'function';

export const prometheusOptions: s.Schema<object> = s.object({
  register: s.objectWith<MetricsRegister>('a Registry of prom-client', ...registerMethods),
  prefix: s.optional(aPrefix),
  inferencePool: s.optional(anyText),
  fairnessIdLabel: s.optional(s.flag()),
  maxFairnessIds: s.optional(s.positiveInteger()),
  maxSeries: s.optional(s.positiveInteger()),
  queueDurationBuckets: s.optional(bucketBounds),
  pinnedFairnessIds: s.optional(s.list(anyText, 'a list of texts')),
  modelName: s.optional(aFunction),
  targetModelName: s.optional(aFunction),
  detectors: s.optional(s.value('a list of detectors, or a function that answers one', areDetectors)),
  dynamo: s.optional(s.object({ endpoint: s.optional(aFunction) })),
} satisfies Record<keyof PrometheusMetricsOptions, unknown>);
