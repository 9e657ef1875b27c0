/** `headgate`: the core's public face. */

export type { AdmissionKey, AdmissionPolicy, AdmissionView, Refusal } from './admission/admission-policy.js';
export { allOf } from './admission/all-of.js';
export { type SloClasses, sloClasses } from './admission/slo-classes.js';
export {
  automaticConcurrencyLimit,
  type WorkerAdmission,
  type WorkerLease,
  workerAdmission,
} from './admission/worker-admission.js';
export { type Clock, realClock } from './base/clock.js';
export { type ConfigIssue, FlowConfigError } from './base/faults/flow-config-error.js';
export type { Duration } from './base/schema/duration.js';
export type { Schema } from './base/schema/element.js';
export type { Quantity } from './base/schema/quantity.js';
export type { FlowEvents } from './core/events.js';
export { FlowController } from './core/flow-controller.js';
export type { FlowGate } from './core/flow-gate.js';
export type { FlowKey, FlowRequest } from './core/flow-request.js';
export type { ControllerFigures } from './core/inspect/figures.js';
export { logDrops } from './core/inspect/log-drops.js';
export type { ControllerOverview, OverviewBounds } from './core/inspect/overview.js';
export type { FlowStats } from './core/inspect/stats.js';
export type {
  BandOptions,
  BandTemplate,
  FlowControllerOptions,
  FlowSettings,
  InFlightOptions,
  ResolvedOptions,
} from './core/options.js';
export { type DropExplanation, explainDrop } from './core/outcome/explain-drop.js';
export type { Explanation, WaitExplanation } from './core/outcome/explanation.js';
export { FlowControlError } from './core/outcome/flow-control-error.js';
export { FlowEvictedError } from './core/outcome/flow-evicted-error.js';
export type { Lease } from './core/outcome/lease.js';
export type { Dispatched, Drop, DropReason, Outcome, OutcomeType } from './core/outcome/outcome.js';
export type { ShadowDrops, ShadowFigures } from './core/outcome/shadow-figures.js';
export { resolveOptions } from './core/resolve-options.js';
export type { EndpointMetrics, EndpointView, LoraAdapters, PoolView, RankLoad } from './endpoints/endpoint.js';
export { type EndpointOptions, EndpointPool, type PoolEvents } from './endpoints/endpoint-pool.js';
export type { EndpointFilter } from './endpoints/filters/endpoint-filter.js';
export type { MetricsReport } from './endpoints/metrics-report.js';
export type { EndpointPicker } from './endpoints/pickers/endpoint-picker.js';
export { prefixKey } from './endpoints/pickers/prefix-key.js';
export { type TokenSubject, tokenEstimator } from './endpoints/token-estimator.js';
export type { EvictionFilter, EvictionOrdering, InFlightView } from './eviction/eviction-policy.js';
export type { UsageLimitPolicy } from './gate/ceilings/usage-limit-policy.js';
export type { AdaptiveDetector } from './gate/detectors/adaptive/adaptive-limit.js';
export type { QuotaFigure, QuotaFigures } from './gate/quota-figure.js';
export type { RequestWait, SaturationDetector } from './gate/saturation-detector.js';
export type { SeatView, ServerAnswer } from './gate/server-answer.js';
export type { SessionFigures } from './gate/session-figures.js';
export * from './plugins/built-ins.js';
export { definePlugin, type PluginDefinition, type PluginReferences } from './plugins/definition.js';
export type { ConfigurableKind, Plugins } from './plugins/kinds.js';
export { PluginRegistry } from './plugins/registry.js';
export { schemas } from './plugins/schemas.js';
export type { BandOrderPolicy } from './tiers/1-priority/band-order-policy.js';
export type { CostFunction, CostOptions, Work } from './tiers/2-fairness/by-cost/cost-options.js';
export { type OutputPredictor, outputPredictor } from './tiers/2-fairness/by-cost/output-predictor.js';
export type { FairnessPolicy, FlowFairnessPolicy, FlowSelector } from './tiers/2-fairness/fairness-policy.js';
export type { OrderingPolicy } from './tiers/3-ordering/ordering-policy.js';
export type { BandView, FlowView, ItemView, Usage } from './tiers/views.js';
