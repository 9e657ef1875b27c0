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
export { type Clock, realClock } from './core/clock.js';
export type { BandDemand, FlowDemand } from './core/demand.js';
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
export { type DropCause, type DropCode, type DropExplanation, explainDrop } from './core/explain-drop.js';
export type { DecidedBy, Explanation, WaitExplanation } from './core/explanation.js';
export { type DropResponse, FlowControlError } from './core/flow-control-error.js';
export { type CloseOptions, FlowController, type RunOptions } from './core/flow-controller.js';
export { FlowEvictedError } from './core/flow-evicted-error.js';
export type { FlowGate } from './core/flow-gate.js';
export type { FlowKey, FlowRequest } from './core/flow-request.js';
export type { Lease } from './core/lease.js';
export type {
  BandOptions,
  BandTemplate,
  Duration,
  EvictionOptions,
  FlowControllerOptions,
  FlowOptions,
  GateOptions,
  HolBlocking,
  LimitOptions,
  Limits,
  Quantity,
} from './core/options.js';
export type { Dispatched, Drop, DropReason, DropType, LimitHit, Outcome, OutcomeType } from './core/outcome.js';
export type { BandOverview, ControllerOverview, FlowOverview, OverviewBounds, SlowWait } from './core/overview.js';
export { resolveOptions } from './core/resolve-options.js';
export type { BandSnapshot, ControllerSnapshot, EndpointSnapshot, FlowSnapshot, FlowStats } from './core/snapshot.js';
export { type AffinityOptions, type AffinityParameters, affinity } from './endpoints/affinity.js';
export type { EndpointMetrics, EndpointView, LoraAdapters, PoolView, RankLoad, Stage } from './endpoints/endpoint.js';
export type { EndpointFilter } from './endpoints/endpoint-filter.js';
export type { EndpointPicker } from './endpoints/endpoint-picker.js';
export { type EndpointOptions, EndpointPool, type PoolEvents } from './endpoints/endpoint-pool.js';
export type { ListenerErrorEvent, ListenerErrors } from './endpoints/guarded-events.js';
export { type LabelFilterOptions, type LabelFilterParameters, labelFilter } from './endpoints/label-filter.js';
export { leastKvUsage } from './endpoints/least-kv-usage.js';
export { leastLoaded } from './endpoints/least-loaded.js';
export type { MetricsReport } from './endpoints/metrics-report.js';
export {
  type PowerOfTwoChoicesOptions,
  type PowerOfTwoChoicesParameters,
  powerOfTwoChoices,
} from './endpoints/power-of-two-choices.js';
export { prefixKey } from './endpoints/prefix-key.js';
export { endpointsInSubset, subsetHintFromText } from './endpoints/subset-hint.js';
export { type SubsetHint, type SubsetHintOptions, subsetHint } from './endpoints/subset-hint-filter.js';
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
export type { AdaptiveDetector, AdaptiveLimitOptions, LatencySample, LimitDecision } from './gate/adaptive-limit.js';
export { type AimdLatencyOptions, aimdLatency } from './gate/aimd-latency-detector.js';
export {
  type BusyThresholdDetector,
  type BusyThresholds,
  type BusyThresholdsUpdate,
  busyThresholdDetector,
} from './gate/busy-threshold-detector.js';
export { type ConcurrencyDetectorOptions, concurrencyDetector } from './gate/concurrency-detector.js';
export { type Gradient2Options, gradient2 } from './gate/gradient2-detector.js';
export { type HysteresisDetector, type HysteresisOptions, withHysteresis } from './gate/hysteresis.js';
export type { LatencyStatistic, LatencyWindow } from './gate/latency-window.js';
export { type CompositeChild, type CompositeDetector, maxOf, meanOf } from './gate/max-of.js';
export {
  type InterpolatedUsageLimitOptions,
  interpolatedUsageLimit,
  type PriorityHoldbackOptions,
  priorityHoldback,
} from './gate/priority-holdback.js';
export type { SaturationDetector, SaturationFunction } from './gate/saturation-detector.js';
export { openingPeriod, reflectiveCeiling, softReflectiveCeiling } from './gate/soft-reflective-ceiling.js';
export {
  byStage,
  partitionByRole,
  roleLabel,
  type StageAwareDetector,
  type StageDetectors,
  type StagePartition,
  stagesOf,
} from './gate/stage-aware.js';
export { type StaticUsageLimitOptions, staticUsageLimit } from './gate/static-usage-limit.js';
export type { UsageLimitPolicy } from './gate/usage-limit-policy.js';
export { type UtilizationDetector, type UtilizationDetectorOptions, utilizationDetector } from './gate/utilization-detector.js';
export { type VegasOptions, type VegasParameters, vegas } from './gate/vegas-detector.js';
export { type DropSummary, type LogDropsOptions, logDrops } from './logs/log-drops.js';
export type { Report, Schema } from './options/element.js';
export { type ConfigIssue, FlowConfigError } from './options/flow-config-error.js';
export type { Verdict } from './options/parse.js';
export * as schemas from './options/schema-kit.js';
export { defaultRegistry } from './plugins/default-registry.js';
export { definePlugin, type PluginBlueprint, type PluginDefinition, type PluginReferences } from './plugins/define-plugin.js';
export type { PluginKind } from './plugins/plugin-errors.js';
export type { ConfigurableKind, Plugins } from './plugins/plugin-kinds.js';
export { PluginRegistry } from './plugins/registry.js';
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
