/** `headgate`: the core's public face. */

export type { AdmissionKey, AdmissionPolicy, AdmissionView, Refusal } from './admission/admission-policy.js';
export { allOf } from './admission/all-of.js';
export { alwaysAdmit } from './admission/always-admit.js';
export { refuseWhenAllBusy } from './admission/busy-pool-refusal.js';
export { type GaieLegacyOptions, gaieLegacy } from './admission/gaie-legacy.js';
export {
  type ProbabilisticAdmitterOptions,
  type ProbabilisticAdmitterParameters,
  probabilisticAdmitter,
} from './admission/probabilistic-admitter.js';
export { rejectAll } from './admission/reject-all.js';
export { type SloClasses, type SloClassesOptions, sloClasses } from './admission/slo-classes.js';
export { type TenantBudgets, type TenantBudgetsOptions, tenantBudgets } from './admission/tenant-budgets.js';
export { type TierShedOptions, tierShed } from './admission/tier-shed.js';
export {
  type TokenBucket,
  type TokenBucketOptions,
  type TokenBucketParameters,
  type TokenCosted,
  tokenBucket,
} from './admission/token-bucket.js';
export {
  automaticConcurrencyLimit,
  type WorkerAdmission,
  type WorkerAdmissionOptions,
  type WorkerAdmissionStats,
  type WorkerLease,
  type WorkerLimits,
  type WorkerOutcome,
  type WorkerRefusalReason,
  workerAdmission,
} from './admission/worker-admission.js';
export { type Clock, realClock } from './base/clock.js';
export { type ConfigIssue, FlowConfigError } from './base/faults/flow-config-error.js';
export type { ListenerErrorEvent, ListenerErrors } from './base/faults/guarded-events.js';
export type { PluginKind } from './base/faults/plugin-errors.js';
export type { Duration } from './base/schema/duration.js';
export type { Report, Schema } from './base/schema/element.js';
export type { Verdict } from './base/schema/parse.js';
export type { Quantity } from './base/schema/quantity.js';
export type {
  BandEvent,
  DispatchedEvent,
  DroppedEvent,
  EnqueuedEvent,
  EvictedEvent,
  FlowEvent,
  FlowEvents,
  GateEvent,
  PluginErrorEvent,
  QueuedEvent,
  RegimeEvent,
  ReleasedEvent,
  WalkedEvent,
} from './core/events.js';
export { type CloseOptions, FlowController, type RunOptions } from './core/flow-controller.js';
export type { FlowGate } from './core/flow-gate.js';
export type { FlowKey, FlowRequest } from './core/flow-request.js';
export type { BandDemand, FlowDemand } from './core/inspect/demand.js';
export { type DropSummary, type LogDropsOptions, logDrops } from './core/inspect/log-drops.js';
export type { BandOverview, ControllerOverview, FlowOverview, OverviewBounds, SlowWait } from './core/inspect/overview.js';
export type { BandSnapshot, ControllerSnapshot, EndpointSnapshot, FlowSnapshot, FlowStats } from './core/inspect/snapshot.js';
export type {
  BandOptions,
  BandTemplate,
  EvictionOptions,
  FlowControllerOptions,
  FlowOptions,
  GateOptions,
  HolBlocking,
  LimitOptions,
  Limits,
} from './core/options.js';
export { type DropCause, type DropCode, type DropExplanation, explainDrop } from './core/outcome/explain-drop.js';
export type { DecidedBy, Explanation, WaitExplanation } from './core/outcome/explanation.js';
export { type DropResponse, FlowControlError } from './core/outcome/flow-control-error.js';
export { FlowEvictedError } from './core/outcome/flow-evicted-error.js';
export type { Lease } from './core/outcome/lease.js';
export type { LimitHit } from './core/outcome/limit-hit.js';
export type { Dispatched, Drop, DropReason, DropType, Outcome, OutcomeType } from './core/outcome/outcome.js';
export { resolveOptions } from './core/resolve-options.js';
export type { EndpointMetrics, EndpointView, LoraAdapters, PoolView, RankLoad, Stage } from './endpoints/endpoint.js';
export { type EndpointOptions, EndpointPool, type PoolEvents } from './endpoints/endpoint-pool.js';
export type { EndpointFilter } from './endpoints/filters/endpoint-filter.js';
export { type LabelFilterOptions, type LabelFilterParameters, labelFilter } from './endpoints/filters/label-filter.js';
export { endpointsInSubset, subsetHintFromText } from './endpoints/filters/subset-hint.js';
export { type SubsetHint, type SubsetHintOptions, subsetHint } from './endpoints/filters/subset-hint-filter.js';
export type { MetricsReport } from './endpoints/metrics-report.js';
export { type AffinityOptions, type AffinityParameters, affinity } from './endpoints/pickers/affinity.js';
export type { EndpointPicker } from './endpoints/pickers/endpoint-picker.js';
export { leastKvUsage } from './endpoints/pickers/least-kv-usage.js';
export { leastLoaded } from './endpoints/pickers/least-loaded.js';
export {
  type PowerOfTwoChoicesOptions,
  type PowerOfTwoChoicesParameters,
  powerOfTwoChoices,
} from './endpoints/pickers/power-of-two-choices.js';
export { prefixKey } from './endpoints/pickers/prefix-key.js';
export {
  estimatedOutputTokens,
  type PrefixMatch,
  type TokenEstimatorOptions,
  type TokenSubject,
  tokenEstimator,
  tokenEstimatorOptions,
  uncachedInputTokens,
} from './endpoints/token-estimator.js';
export type { EvictionFilter, EvictionOrdering, InFlightView } from './eviction/eviction-policy.js';
export type { ReclaimFigures } from './eviction/in-flight-evictor.js';
export { sheddableOnly } from './eviction/sheddable-filter.js';
export { largestFootprint, leastProgress, priorityThenTime } from './eviction/victim-orders.js';
export {
  type InterpolatedUsageLimitOptions,
  interpolatedUsageLimit,
  type PriorityHoldbackOptions,
  priorityHoldback,
} from './gate/ceilings/priority-holdback.js';
export { openingPeriod, reflectiveCeiling, softReflectiveCeiling } from './gate/ceilings/soft-reflective-ceiling.js';
export { type StaticUsageLimitOptions, staticUsageLimit } from './gate/ceilings/static-usage-limit.js';
export type { UsageLimitPolicy } from './gate/ceilings/usage-limit-policy.js';
export type { AdaptiveDetector, AdaptiveLimitOptions, LatencySample, LimitDecision } from './gate/detectors/adaptive/adaptive-limit.js';
export { type AimdLatencyOptions, aimdLatency } from './gate/detectors/adaptive/aimd-latency-detector.js';
export { type Gradient2Options, gradient2 } from './gate/detectors/adaptive/gradient2-detector.js';
export type { LatencyStatistic, LatencyWindow } from './gate/detectors/adaptive/latency-window.js';
export { type VegasOptions, type VegasParameters, vegas } from './gate/detectors/adaptive/vegas-detector.js';
export {
  type BusyThresholdDetector,
  type BusyThresholds,
  type BusyThresholdsUpdate,
  busyThresholdDetector,
} from './gate/detectors/busy-threshold-detector.js';
export { type HysteresisDetector, type HysteresisOptions, withHysteresis } from './gate/detectors/composite/hysteresis.js';
export { type CompositeChild, type CompositeDetector, maxOf, meanOf } from './gate/detectors/composite/max-of.js';
export {
  byStage,
  partitionByRole,
  roleLabel,
  type StageAwareDetector,
  type StageDetectors,
  type StagePartition,
  stagesOf,
} from './gate/detectors/composite/stage-aware.js';
export { type ConcurrencyDetectorOptions, concurrencyDetector } from './gate/detectors/concurrency-detector.js';
export { type UtilizationDetector, type UtilizationDetectorOptions, utilizationDetector } from './gate/detectors/utilization-detector.js';
export type { SaturationDetector, SaturationFunction } from './gate/saturation-detector.js';
export { defaultRegistry } from './plugins/built-ins.js';
export { definePlugin, type PluginBlueprint, type PluginDefinition, type PluginReferences } from './plugins/definition.js';
export type { ConfigurableKind, Plugins } from './plugins/kinds.js';
export { PluginRegistry } from './plugins/registry.js';
export * as schemas from './plugins/schemas.js';
export type { FairnessPolicy, FlowFairnessPolicy, FlowSelector, SharedQueuePolicy } from './tiers/2-fairness/fairness-policy.js';
export { globalStrict } from './tiers/2-fairness/global-strict.js';
export { jainIndex } from './tiers/2-fairness/jain-index.js';
export { type ProgramAwareOptions, type ProgramAwarePolicy, programAware } from './tiers/2-fairness/program-aware.js';
export { roundRobin } from './tiers/2-fairness/round-robin.js';
export { edf } from './tiers/3-ordering/edf.js';
export { fcfs } from './tiers/3-ordering/fcfs.js';
export type { OrderingPolicy } from './tiers/3-ordering/ordering-policy.js';
export { sloDeadline } from './tiers/3-ordering/slo-deadline.js';
export type { BandView, FlowView, ItemView, Usage } from './tiers/views.js';
