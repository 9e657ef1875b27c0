/** `headgate/prometheus`: metrics for prom-client, under the names of llm-d and Dynamo. */
export type { Observation, ObservedFlow } from '../metrics/labelled-flows.js';
export { exposition, type PrintedRegister } from './exposition.js';
export type { PrometheusMetricsOptions } from './options.js';
export { prometheusMetrics } from './prometheus-metrics.js';
export type { MetricsRegister, RegisteredMetric } from './scraped-metric.js';
export * from './shared-state-metrics.js';
export { workerMetrics } from './worker-metrics.js';
