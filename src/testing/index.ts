/** `headgate/testing`: what tests of hosts and of policies need, and the figures that reports of load tests are made of. */
export { type BacklogRun, backlogDriftStability } from './backlog-drift-stability.js';
export { type CompositeRun, compositeStability } from './composite-stability.js';
export { ManualClock } from './manual-clock.js';
export { percentile } from './percentile.js';
export {
  type ClassAttainment,
  type CompletedRequest,
  type Latencies,
  type SloAttainment,
  type SloDimension,
  type SloReport,
  sloAttainment,
} from './slo-attainment.js';
export type { Stability, StabilityLevel } from './stability.js';
export { type ThresholdOptions, thresholdStability } from './threshold-stability.js';
