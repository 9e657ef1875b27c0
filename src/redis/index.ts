/** `headgate/redis`: one limit, one budget and one picture of the pool for many replicas, on Redis or Valkey. */
export type { BudgetCost, SharedBudget, SharedBudgetsOptions } from './budgets/budget-options.js';
export * from './budgets/shared-budgets.js';
export { type SharedFairness, type SharedFairnessOptions, sharedFairness } from './fairness/shared-fairness.js';
export type { LeaseEvents, LeaseStatus } from './leases/capacity-lease.js';
export type { LeaseOptions, SharedConcurrencyOptions } from './leases/lease-options.js';
export type { LeasedDetector, WaitingFlow } from './leases/leased-detector.js';
export { type MachineStore, machineStore } from './leases/machine-store.js';
export { type SharedConcurrency, sharedConcurrency } from './leases/shared-concurrency.js';
export * from './leases/shared-endpoints.js';
export { type SharedMarks, type SharedMarksOptions, sharedMarks } from './marks/shared-marks.js';
export * from './quotas/shared-quotas.js';
export { type SharedSessions, type SharedSessionsOptions, sharedSessions } from './sessions/shared-sessions.js';
export { localStore } from './store/local-store.js';
export * from './store/redis-store.js';
export type { LinkFigures, Store, StoreMessages, StoreScript } from './store/store.js';
export type { StoreProblem, StoreProblemCode } from './store/store-problem.js';
export { storeScripts } from './store-scripts.js';
