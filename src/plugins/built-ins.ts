/** The package's policies: the factories for hosts, and the list of those that configuration files can name. */
import { alwaysAdmit, rejectAll } from '../admission/fixed-answers.js';
import { gaieLegacyPlugin } from '../admission/gaie-legacy.js';
import { probabilisticAdmitterPlugin } from '../admission/probabilistic-admitter.js';
import { refuseWhenAllBusy } from '../admission/refuse-when-all-busy.js';
import { tenantBudgetsPlugin } from '../admission/tenant-budgets.js';
import { tierShedPlugin } from '../admission/tier-shed.js';
import { tokenBucketPlugin } from '../admission/token-bucket.js';
import { type Definition, withoutParameters } from '../base/policy-definition.js';
import { capacityLedgerPlugin } from '../constraints/capacity/capacity-ledger.js';
import { circuitBreakerPlugin } from '../constraints/circuit-breaker.js';
import { mostBudgetLeftPlugin } from '../constraints/quotas/most-budget-left.js';
import { quotaPlugin } from '../constraints/quotas/quota-detector.js';
import { sessionLimitPlugin } from '../constraints/sessions/session-limit.js';
import { labelFilterPlugin } from '../endpoints/filters/label-filter.js';
import { subsetHint } from '../endpoints/filters/subset-hint-filter.js';
import { affinityPlugin } from '../endpoints/pickers/affinity.js';
import { leastKvUsage } from '../endpoints/pickers/least-kv-usage.js';
import { leastLoaded } from '../endpoints/pickers/least-loaded.js';
import { powerOfTwoChoicesPlugin } from '../endpoints/pickers/power-of-two-choices.js';
import { largestFootprint, leastProgress, noByteSent, priorityThenTime, sheddableOnly } from '../eviction/victims.js';
import { interpolatedUsageLimitPlugin, priorityHoldbackPlugin } from '../gate/ceilings/priority-holdback.js';
import { softReflectiveCeilingPlugin } from '../gate/ceilings/soft-reflective-ceiling.js';
import { staticUsageLimitPlugin } from '../gate/ceilings/static-usage-limit.js';
import { aimdLatencyPlugin } from '../gate/detectors/adaptive/aimd-latency-detector.js';
import { gradient2Plugin } from '../gate/detectors/adaptive/gradient2-detector.js';
import { vegasPlugin } from '../gate/detectors/adaptive/vegas-detector.js';
import { busyThresholdDetectorPlugin } from '../gate/detectors/busy-threshold-detector.js';
import { hysteresisPlugin } from '../gate/detectors/composite/hysteresis.js';
import { maxOfPlugin, meanOfPlugin } from '../gate/detectors/composite/max-of.js';
import { stageAwarePlugin } from '../gate/detectors/composite/stage-aware.js';
import { concurrencyDetectorPlugin } from '../gate/detectors/concurrency-detector.js';
import { scrapedConcurrencyPlugin } from '../gate/detectors/scraped-concurrency-detector.js';
import { utilizationDetectorPlugin } from '../gate/detectors/utilization-detector.js';
import { strictBands } from '../tiers/1-priority/strict-bands.js';
import { weightedBandsPlugin } from '../tiers/1-priority/weighted-bands.js';
import { deficitRoundRobinPlugin } from '../tiers/2-fairness/deficit-round-robin.js';
import { globalStrict } from '../tiers/2-fairness/global-strict.js';
import { hierarchicalPlugin } from '../tiers/2-fairness/hierarchical.js';
import { programAwarePlugin } from '../tiers/2-fairness/program-aware.js';
import { roundRobin } from '../tiers/2-fairness/round-robin.js';
import { shuffleShardedPlugin } from '../tiers/2-fairness/shuffle-sharded.js';
import {
  leastServicePlugin,
  startTimeFairQueueingPlugin,
  virtualTokenCounterPlugin,
} from '../tiers/2-fairness/virtual-token-counter.js';
import { edfPlugin } from '../tiers/3-ordering/edf.js';
import { fcfs } from '../tiers/3-ordering/fcfs.js';
import { prefixOrderPlugin } from '../tiers/3-ordering/prefix-order.js';
import { shortestFirstPlugin } from '../tiers/3-ordering/shortest-first.js';
import { sloDeadline } from '../tiers/3-ordering/slo-deadline.js';
import { definePlugin, type PluginReferences } from './definition.js';
import { type ConfigurableKind, configurableKinds, type Plugins } from './kinds.js';
import { PluginRegistry } from './registry.js';

export { alwaysAdmit, rejectAll } from '../admission/fixed-answers.js';
export { gaieLegacy } from '../admission/gaie-legacy.js';
export { probabilisticAdmitter } from '../admission/probabilistic-admitter.js';
export { refuseWhenAllBusy } from '../admission/refuse-when-all-busy.js';
export { tenantBudgets } from '../admission/tenant-budgets.js';
export { tierShed } from '../admission/tier-shed.js';
export { tokenBucket } from '../admission/token-bucket.js';
export { capacityLedger } from '../constraints/capacity/capacity-ledger.js';
export { circuitBreaker } from '../constraints/circuit-breaker.js';
export { mostBudgetLeft } from '../constraints/quotas/most-budget-left.js';
export { quotaDetector } from '../constraints/quotas/quota-detector.js';
export { sessionLimit } from '../constraints/sessions/session-limit.js';
export { labelFilter } from '../endpoints/filters/label-filter.js';
export { subsetHint } from '../endpoints/filters/subset-hint-filter.js';
export { affinity } from '../endpoints/pickers/affinity.js';
export { leastKvUsage } from '../endpoints/pickers/least-kv-usage.js';
export { leastLoaded } from '../endpoints/pickers/least-loaded.js';
export { powerOfTwoChoices } from '../endpoints/pickers/power-of-two-choices.js';
export { largestFootprint, leastProgress, noByteSent, priorityThenTime, sheddableOnly } from '../eviction/victims.js';
export { interpolatedUsageLimit, priorityHoldback } from '../gate/ceilings/priority-holdback.js';
export { softReflectiveCeiling } from '../gate/ceilings/soft-reflective-ceiling.js';
export { staticUsageLimit } from '../gate/ceilings/static-usage-limit.js';
export { aimdLatency } from '../gate/detectors/adaptive/aimd-latency-detector.js';
export { gradient2 } from '../gate/detectors/adaptive/gradient2-detector.js';
export { vegas } from '../gate/detectors/adaptive/vegas-detector.js';
export { busyThresholdDetector } from '../gate/detectors/busy-threshold-detector.js';
export { withHysteresis } from '../gate/detectors/composite/hysteresis.js';
export { maxOf, meanOf } from '../gate/detectors/composite/max-of.js';
export { byStage, roleLabel } from '../gate/detectors/composite/stage-aware.js';
export { concurrencyDetector } from '../gate/detectors/concurrency-detector.js';
export { scrapedConcurrency } from '../gate/detectors/scraped-concurrency-detector.js';
export { utilizationDetector } from '../gate/detectors/utilization-detector.js';
export { strictBands } from '../tiers/1-priority/strict-bands.js';
export { weightedBands } from '../tiers/1-priority/weighted-bands.js';
export { deficitRoundRobin } from '../tiers/2-fairness/deficit-round-robin.js';
export { globalStrict } from '../tiers/2-fairness/global-strict.js';
export { hierarchical } from '../tiers/2-fairness/hierarchical.js';
export { programAware } from '../tiers/2-fairness/program-aware.js';
export { roundRobin } from '../tiers/2-fairness/round-robin.js';
export { shuffleSharded } from '../tiers/2-fairness/shuffle-sharded.js';
export { leastService, startTimeFairQueueing, virtualTokenCounter } from '../tiers/2-fairness/virtual-token-counter.js';
export { edf } from '../tiers/3-ordering/edf.js';
export { fcfs } from '../tiers/3-ordering/fcfs.js';
export { prefixOrder } from '../tiers/3-ordering/prefix-order.js';
export { shortestFirst } from '../tiers/3-ordering/shortest-first.js';
export { sloDeadline } from '../tiers/3-ordering/slo-deadline.js';

/** A policy without parameters stands as its factory. */
type BuiltIn<K extends ConfigurableKind> = Definition<Plugins[K], PluginReferences> | (() => Plugins[K]);

const builtIns: { readonly [K in ConfigurableKind]: readonly BuiltIn<K>[] } = {
  fairness: [
    globalStrict,
    roundRobin,
    programAwarePlugin,
    virtualTokenCounterPlugin,
    startTimeFairQueueingPlugin,
    leastServicePlugin,
    deficitRoundRobinPlugin,
    hierarchicalPlugin,
    shuffleShardedPlugin,
  ],
  ordering: [fcfs, edfPlugin, prefixOrderPlugin, shortestFirstPlugin, sloDeadline],
  saturationDetector: [
    concurrencyDetectorPlugin,
    utilizationDetectorPlugin,
    scrapedConcurrencyPlugin,
    busyThresholdDetectorPlugin,
    aimdLatencyPlugin,
    gradient2Plugin,
    vegasPlugin,
    hysteresisPlugin,
    maxOfPlugin,
    meanOfPlugin,
    stageAwarePlugin,
  ],
  constraint: [capacityLedgerPlugin, quotaPlugin, circuitBreakerPlugin, sessionLimitPlugin],
  usageLimit: [
    staticUsageLimitPlugin,
    priorityHoldbackPlugin,
    interpolatedUsageLimitPlugin,
    softReflectiveCeilingPlugin,
  ],
  bandOrder: [strictBands, weightedBandsPlugin],
  endpointPicker: [leastLoaded, leastKvUsage, powerOfTwoChoicesPlugin, mostBudgetLeftPlugin, affinityPlugin],
  endpointFilter: [labelFilterPlugin, () => subsetHint()],
  admission: [
    alwaysAdmit,
    refuseWhenAllBusy,
    rejectAll,
    tokenBucketPlugin,
    tierShedPlugin,
    gaieLegacyPlugin,
    tenantBudgetsPlugin,
    probabilisticAdmitterPlugin,
  ],
  evictionFilter: [noByteSent, sheddableOnly],
  evictionOrdering: [priorityThenTime, leastProgress, largestFootprint],
};

let registry: PluginRegistry | undefined;

/** The registry of the built-in plugins; `add` your own. */
export function defaultRegistry(): PluginRegistry {
  registry ??= new PluginRegistry(
    configurableKinds.flatMap((kind) =>
      builtIns[kind].map((each) =>
        definePlugin({ kind, ...(typeof each === 'function' ? withoutParameters<Plugins[typeof kind]>(each) : each) }),
      ),
    ),
  );
  return registry;
}
