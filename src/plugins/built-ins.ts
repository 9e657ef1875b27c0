/** The policies that come with the package, under the type names of llm-d: one line each. Their definitions stand beside their code. */
import { alwaysAdmitPlugin } from '../admission/always-admit.js';
import { refuseWhenAllBusyPlugin } from '../admission/busy-pool-refusal.js';
import { gaieLegacyPlugin } from '../admission/gaie-legacy.js';
import { probabilisticAdmitterPlugin } from '../admission/probabilistic-admitter.js';
import { rejectAllPlugin } from '../admission/reject-all.js';
import { tenantBudgetsPlugin } from '../admission/tenant-budgets.js';
import { tierShedPlugin } from '../admission/tier-shed.js';
import { tokenBucketPlugin } from '../admission/token-bucket.js';
import { labelFilterPlugin } from '../endpoints/filters/label-filter.js';
import { subsetHintPlugin } from '../endpoints/filters/subset-hint-filter.js';
import { affinityPlugin } from '../endpoints/pickers/affinity.js';
import { leastKvUsagePlugin } from '../endpoints/pickers/least-kv-usage.js';
import { leastLoadedPlugin } from '../endpoints/pickers/least-loaded.js';
import { powerOfTwoChoicesPlugin } from '../endpoints/pickers/power-of-two-choices.js';
import { sheddableOnlyPlugin } from '../eviction/sheddable-filter.js';
import { largestFootprintPlugin, leastProgressPlugin, priorityThenTimePlugin } from '../eviction/victim-orders.js';
import { interpolatedUsageLimitPlugin, priorityHoldbackPlugin } from '../gate/ceilings/priority-holdback.js';
import { softReflectiveCeilingPlugin } from '../gate/ceilings/soft-reflective-ceiling.js';
import { staticUsageLimitPlugin } from '../gate/ceilings/static-usage-limit.js';
import { aimdLatencyPlugin } from '../gate/detectors/adaptive/aimd-latency-detector.js';
import { gradient2Plugin } from '../gate/detectors/adaptive/gradient2-detector.js';
import { vegasPlugin } from '../gate/detectors/adaptive/vegas-detector.js';
import { busyThresholdDetectorPlugin } from '../gate/detectors/busy-threshold-detector.js';
import { hysteresisPlugin } from '../gate/detectors/composite/hysteresis.js';
import { maxOfPlugin, meanOfPlugin } from '../gate/detectors/composite/max-of-plugin.js';
import { stageAwarePlugin } from '../gate/detectors/composite/stage-aware.js';
import { concurrencyDetectorPlugin } from '../gate/detectors/concurrency-detector.js';
import { utilizationDetectorPlugin } from '../gate/detectors/utilization-detector.js';
import { globalStrictPlugin } from '../tiers/2-fairness/global-strict.js';
import { programAwarePlugin } from '../tiers/2-fairness/program-aware.js';
import { roundRobinPlugin } from '../tiers/2-fairness/round-robin.js';
import { edfPlugin } from '../tiers/3-ordering/edf.js';
import { fcfsPlugin } from '../tiers/3-ordering/fcfs.js';
import { sloDeadlinePlugin } from '../tiers/3-ordering/slo-deadline.js';
import { definePlugin, type PluginBlueprint } from './definition.js';
import type { ConfigurableKind } from './kinds.js';
import { PluginRegistry } from './registry.js';

const builtIns: readonly PluginBlueprint<ConfigurableKind, unknown>[] = [
  globalStrictPlugin,
  roundRobinPlugin,
  programAwarePlugin,
  fcfsPlugin,
  edfPlugin,
  sloDeadlinePlugin,
  concurrencyDetectorPlugin,
  utilizationDetectorPlugin,
  busyThresholdDetectorPlugin,
  aimdLatencyPlugin,
  gradient2Plugin,
  vegasPlugin,
  hysteresisPlugin,
  maxOfPlugin,
  meanOfPlugin,
  stageAwarePlugin,
  staticUsageLimitPlugin,
  priorityHoldbackPlugin,
  interpolatedUsageLimitPlugin,
  softReflectiveCeilingPlugin,
  sheddableOnlyPlugin,
  priorityThenTimePlugin,
  leastProgressPlugin,
  largestFootprintPlugin,
  leastLoadedPlugin,
  leastKvUsagePlugin,
  powerOfTwoChoicesPlugin,
  affinityPlugin,
  labelFilterPlugin,
  subsetHintPlugin,
  alwaysAdmitPlugin,
  refuseWhenAllBusyPlugin,
  rejectAllPlugin,
  tokenBucketPlugin,
  tierShedPlugin,
  gaieLegacyPlugin,
  tenantBudgetsPlugin,
  probabilisticAdmitterPlugin,
];

let registry: PluginRegistry | undefined;

/** The registry of the built-in plugins; `add` to it what is your own. */
export function defaultRegistry(): PluginRegistry {
  registry ??= new PluginRegistry(builtIns.map((definition) => definePlugin(definition)));
  return registry;
}
