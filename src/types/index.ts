/** `headgate/types`: types that are parts of what `headgate` exports. There is no code here. */
export type { AdmissionKey, AdmissionView, Rejection } from '../admission/admission-policy.js';
export type { SloClasses } from '../admission/slo-classes.js';
export type { TenantBudgets } from '../admission/tenant-budgets.js';
export type { TokenBucket } from '../admission/token-bucket.js';
export type { WorkerAdmission, WorkerLease } from '../admission/worker-admission.js';
export type { EndpointGroup } from '../base/endpoint-turns.js';
export type { QuotaSource, QuotaTerms, QuotaWindow, Taking as QuotaTaking } from '../base/quota-window.js';
export type { CapacityLedgerOptions } from '../constraints/capacity/capacity-ledger.js';
export type { CircuitBreaker, CircuitState } from '../constraints/circuit-breaker.js';
export type { QuotaDetector } from '../constraints/quotas/quota-detector.js';
export type {
  QuotaDetectorOptions,
  QuotaEstimate,
  QuotaGroupOptions,
  QuotaOptions,
} from '../constraints/quotas/quota-options.js';
export type { SessionLimit } from '../constraints/sessions/session-limit.js';
export type { SessionLimitOptions } from '../constraints/sessions/session-options.js';
export type * from '../constraints/sessions/session-sharing.js';
export type { SharedPrefix } from '../constraints/sessions/session-table.js';
export type { ControllerOverview, OverviewBounds } from '../core/inspect/overview.js';
export type { Eviction, InFlightOptions, ResolvedOptions, Shadow } from '../core/options.js';
export type { DropExplanation } from '../core/outcome/explain-drop.js';
export type { Explanation, WaitExplanation } from '../core/outcome/explanation.js';
export type { ShadowDrops, ShadowFigures } from '../core/outcome/shadow-figures.js';
export type { EndpointMetrics, LoraAdapters, RankLoad } from '../endpoints/endpoint.js';
export type { EndpointOptions, PoolEvents } from '../endpoints/endpoint-pool.js';
export type { SubsetHint } from '../endpoints/filters/subset-hint-filter.js';
export type { MetricsReport } from '../endpoints/metrics-report.js';
export type { TokenSubject } from '../endpoints/token-estimator.js';
export type { EvictionOptions, InFlightView } from '../eviction/eviction-policy.js';
export type { RequestWait } from '../gate/constraint.js';
export type { AdaptiveDetector } from '../gate/detectors/adaptive/adaptive-limit.js';
export type { BusyThresholdDetector, BusyThresholds } from '../gate/detectors/busy-threshold-detector.js';
export type { HysteresisDetector } from '../gate/detectors/composite/hysteresis.js';
export type { CompositeDetector } from '../gate/detectors/composite/max-of.js';
export type { StageAwareDetector } from '../gate/detectors/composite/stage-aware.js';
export type { UtilizationDetector } from '../gate/detectors/utilization-detector.js';
export type { CapacityFigure, QuotaFigure, QuotaFigures, SessionFigures } from '../gate/reported-figures.js';
export type { SeatView, ServerAnswer } from '../gate/server-answer.js';
export type { PluginDefinition, PluginReferences } from '../plugins/definition.js';
export type { ConfigurableKind, Plugins } from '../plugins/kinds.js';
export type { WeightedBandsOptions } from '../tiers/1-priority/weighted-bands.js';
export type { CostFunction, CostOptions, Work } from '../tiers/2-fairness/by-cost/cost-options.js';
export type { OutputPredictor } from '../tiers/2-fairness/by-cost/output-predictor.js';
export type { FlowSelector } from '../tiers/2-fairness/fairness-policy.js';
export type { ProgramAwarePolicy } from '../tiers/2-fairness/program-aware.js';
export type { PrefixOrderOptions } from '../tiers/3-ordering/prefix-order.js';
export type { ShortestFirstOptions } from '../tiers/3-ordering/shortest-first.js';
export type { BandView, FlowView, TokenEstimate } from '../tiers/views.js';
