/** `headgate/opentelemetry`: metrics, and spans of requests that wait. Needs `@opentelemetry/api` only. */
export type { Observation, ObservedFlow } from '../metrics/observed-flow.js';
export { type OpenTelemetryMetricsOptions, openTelemetryMetrics } from './open-telemetry-metrics.js';
export { type TraceFlowControlOptions, traceFlowControl } from './trace-flow-control.js';
