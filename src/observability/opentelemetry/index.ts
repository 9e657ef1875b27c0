/** `headgate/opentelemetry`: metrics, and spans of requests that wait. Needs `@opentelemetry/api` only. */
export type { Observation, ObservedFlow } from '../metrics/labelled-flows.js';
export { type OpenTelemetryMetricsOptions, openTelemetryMetrics } from './open-telemetry-metrics.js';
export { type TraceFlowControlOptions, traceFlowControl } from './trace-flow-control.js';
