/** `headgate`: the core's public face. */

export type { AdmissionKey, AdmissionPolicy, AdmissionView, Refusal } from './admission/admission-policy.js';
export { allOf } from './admission/all-of.js';
export { alwaysAdmit } from './admission/always-admit.js';
export { refuseWhenAllBusy } from './admission/busy-pool-refusal.js';
export { gaieLegacy } from './admission/gaie-legacy.js';
export { probabilisticAdmitter } from './admission/probabilistic-admitter.js';
export { rejectAll } from './admission/reject-all.js';
export { type SloClasses, sloClasses } from './admission/slo-classes.js';
export { type TenantBudgets, tenantBudgets } from './admission/tenant-budgets.js';
export { tierShed } from './admission/tier-shed.js';
export {
  type TokenBucket,
  tokenBucket,
} from './admission/token-bucket.js';
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
export type { FlowDemand } from './core/inspect/demand.js';
export type { ControllerFigures } from './core/inspect/figures.js';
export { logDrops } from './core/inspect/log-drops.js';
export type { ControllerOverview, OverviewBounds } from './core/inspect/overview.js';
export type { ControllerSnapshot, FlowStats } from './core/inspect/snapshot.js';
export type {
  BandOptions,
  BandTemplate,
  FlowControllerOptions,
} from './core/options.js';
export { type DropExplanation, explainDrop } from './core/outcome/explain-drop.js';
export type { Explanation, WaitExplanation } from './core/outcome/explanation.js';
export { FlowControlError } from './core/outcome/flow-control-error.js';
export { FlowEvictedError } from './core/outcome/flow-evicted-error.js';
export type { Lease } from './core/outcome/lease.js';
export type { Dispatched, Drop, DropReason, Outcome, OutcomeType } from './core/outcome/outcome.js';
export { resolveOptions } from './core/resolve-options.js';
export type { EndpointMetrics, EndpointView, LoraAdapters, PoolView, RankLoad } from './endpoints/endpoint.js';
export { type EndpointOptions, EndpointPool, type PoolEvents } from './endpoints/endpoint-pool.js';
export type { EndpointFilter } from './endpoints/filters/endpoint-filter.js';
export { labelFilter } from './endpoints/filters/label-filter.js';
export { type SubsetHint, subsetHint } from './endpoints/filters/subset-hint-filter.js';
export type { MetricsReport } from './endpoints/metrics-report.js';
export { affinity } from './endpoints/pickers/affinity.js';
export type { EndpointPicker } from './endpoints/pickers/endpoint-picker.js';
export { leastKvUsage } from './endpoints/pickers/least-kv-usage.js';
export { leastLoaded } from './endpoints/pickers/least-loaded.js';
export { powerOfTwoChoices } from './endpoints/pickers/power-of-two-choices.js';
export { prefixKey } from './endpoints/pickers/prefix-key.js';
export { tokenEstimator } from './endpoints/token-estimator.js';
export type { EvictionFilter, EvictionOrdering, InFlightView } from './eviction/eviction-policy.js';
export { sheddableOnly } from './eviction/sheddable-filter.js';
export { largestFootprint, leastProgress, priorityThenTime } from './eviction/victim-orders.js';
export {
  interpolatedUsageLimit,
  priorityHoldback,
} from './gate/ceilings/priority-holdback.js';
export { softReflectiveCeiling } from './gate/ceilings/soft-reflective-ceiling.js';
export { staticUsageLimit } from './gate/ceilings/static-usage-limit.js';
export type { UsageLimitPolicy } from './gate/ceilings/usage-limit-policy.js';
export type { AdaptiveDetector } from './gate/detectors/adaptive/adaptive-limit.js';
export { aimdLatency } from './gate/detectors/adaptive/aimd-latency-detector.js';
export { gradient2 } from './gate/detectors/adaptive/gradient2-detector.js';
export { vegas } from './gate/detectors/adaptive/vegas-detector.js';
export {
  type BusyThresholdDetector,
  type BusyThresholds,
  busyThresholdDetector,
} from './gate/detectors/busy-threshold-detector.js';
export { type HysteresisDetector, withHysteresis } from './gate/detectors/composite/hysteresis.js';
export { type CompositeDetector, maxOf, meanOf } from './gate/detectors/composite/max-of.js';
export {
  byStage,
  roleLabel,
  type StageAwareDetector,
} from './gate/detectors/composite/stage-aware.js';
export { concurrencyDetector } from './gate/detectors/concurrency-detector.js';
export { type UtilizationDetector, utilizationDetector } from './gate/detectors/utilization-detector.js';
export type { SaturationDetector } from './gate/saturation-detector.js';
export { defaultRegistry } from './plugins/built-ins.js';
export { definePlugin, type PluginDefinition, type PluginReferences } from './plugins/definition.js';
export type { ConfigurableKind, Plugins } from './plugins/kinds.js';
export { PluginRegistry } from './plugins/registry.js';
export { schemas } from './plugins/schemas.js';
export type { FairnessPolicy, FlowFairnessPolicy, FlowSelector } from './tiers/2-fairness/fairness-policy.js';
export { globalStrict } from './tiers/2-fairness/global-strict.js';
export { type ProgramAwarePolicy, programAware } from './tiers/2-fairness/program-aware.js';
export { roundRobin } from './tiers/2-fairness/round-robin.js';
export { edf } from './tiers/3-ordering/edf.js';
export { fcfs } from './tiers/3-ordering/fcfs.js';
export type { OrderingPolicy } from './tiers/3-ordering/ordering-policy.js';
export { sloDeadline } from './tiers/3-ordering/slo-deadline.js';
export type { BandView, FlowView, ItemView, Usage } from './tiers/views.js';
