/** Every plugin that comes with the package, under the type names of llm-d. */
import * as z from 'zod/mini';
import { alwaysAdmit } from '../admission/always-admit.js';
import { refuseWhenAllBusy } from '../admission/busy-pool-refusal.js';
import { gaieLegacy, gaieLegacyOptions } from '../admission/gaie-legacy.js';
import { probabilisticAdmitter, probabilisticAdmitterParameters } from '../admission/probabilistic-admitter.js';
import { rejectAll } from '../admission/reject-all.js';
import { tenantBudgets, tenantBudgetsOptions } from '../admission/tenant-budgets.js';
import { tierShed, tierShedOptions } from '../admission/tier-shed.js';
import { tokenBucket, tokenBucketParameters } from '../admission/token-bucket.js';
import { object } from '../base/schema/element.js';
import { seededRandom } from '../base/seeded-random.js';
import { labelFilter, labelFilterParameters } from '../endpoints/filters/label-filter.js';
import { subsetHint } from '../endpoints/filters/subset-hint-filter.js';
import { affinity, affinityParameters } from '../endpoints/pickers/affinity.js';
import { leastKvUsage } from '../endpoints/pickers/least-kv-usage.js';
import { leastLoaded } from '../endpoints/pickers/least-loaded.js';
import { powerOfTwoChoices, powerOfTwoChoicesParameters } from '../endpoints/pickers/power-of-two-choices.js';
import { sheddableOnly } from '../eviction/sheddable-filter.js';
import { largestFootprint, leastProgress, priorityThenTime } from '../eviction/victim-orders.js';
import {
  interpolatedUsageLimit,
  interpolatedUsageLimitOptions,
  priorityHoldback,
  priorityHoldbackOptions,
} from '../gate/ceilings/priority-holdback.js';
import { softReflectiveCeiling, softReflectiveCeilingOptions } from '../gate/ceilings/soft-reflective-ceiling.js';
import { staticUsageLimit, staticUsageLimitOptions } from '../gate/ceilings/static-usage-limit.js';
import { aimdLatency, aimdLatencyOptions } from '../gate/detectors/adaptive/aimd-latency-detector.js';
import { gradient2, gradient2Options } from '../gate/detectors/adaptive/gradient2-detector.js';
import { vegas, vegasParameters } from '../gate/detectors/adaptive/vegas-detector.js';
import { busyThresholdDetector, busyThresholdDetectorOptions } from '../gate/detectors/busy-threshold-detector.js';
import { concurrencyDetector, concurrencyDetectorOptions } from '../gate/detectors/concurrency-detector.js';
import { utilizationDetector, utilizationDetectorOptions } from '../gate/detectors/utilization-detector.js';
import { globalStrict } from '../tiers/2-fairness/global-strict.js';
import { programAware, programAwareOptions } from '../tiers/2-fairness/program-aware.js';
import { roundRobin } from '../tiers/2-fairness/round-robin.js';
import { edf } from '../tiers/3-ordering/edf.js';
import { fcfs } from '../tiers/3-ordering/fcfs.js';
import { sloDeadline } from '../tiers/3-ordering/slo-deadline.js';
import { compositeDetectors } from './composite-detectors.js';
import { definePlugin } from './definition.js';
import { PluginRegistry } from './registry.js';

const none = object({});

/** The same schema, deaf to a parameter that means something to llm-d only. */
function ignoring<T>(name: string, schema: z.core.$ZodType<T>): z.core.$ZodType<T> {
  const withoutIt = z.transform((parameters: unknown): unknown => {
    if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters)) return parameters;
    return Object.fromEntries(Object.entries(parameters).filter(([key]) => key !== name));
  });
  return z.pipe(withoutIt, schema);
}

let registry: PluginRegistry | undefined;

/** The registry of the built-in plugins; `add` to it what is your own. */
export function defaultRegistry(): PluginRegistry {
  registry ??= new PluginRegistry([
    definePlugin({ kind: 'fairness', type: 'global-strict-fairness-policy', parameters: none, create: globalStrict }),
    definePlugin({ kind: 'fairness', type: 'round-robin-fairness-policy', parameters: none, create: roundRobin }),
    definePlugin({ kind: 'fairness', type: 'program-aware-fairness', parameters: programAwareOptions, create: programAware }),
    definePlugin({ kind: 'ordering', type: 'fcfs-ordering-policy', parameters: none, create: fcfs }),
    definePlugin({ kind: 'ordering', type: 'edf-ordering-policy', parameters: none, create: edf }),
    definePlugin({ kind: 'ordering', type: 'slo-deadline-ordering-policy', parameters: none, create: sloDeadline }),
    definePlugin({
      kind: 'saturationDetector',
      type: 'concurrency-detector',
      // llm-d reads its counters from a producer plugin; here the controller counts.
      parameters: ignoring('inFlightLoadProducerName', concurrencyDetectorOptions),
      create: concurrencyDetector,
    }),
    definePlugin({
      kind: 'saturationDetector',
      type: 'utilization-detector',
      parameters: utilizationDetectorOptions,
      create: utilizationDetector,
    }),
    definePlugin({
      kind: 'saturationDetector',
      type: 'busy-threshold-detector',
      parameters: busyThresholdDetectorOptions,
      create: busyThresholdDetector,
    }),
    definePlugin({ kind: 'saturationDetector', type: 'aimd-latency-detector', parameters: aimdLatencyOptions, create: aimdLatency }),
    definePlugin({ kind: 'saturationDetector', type: 'gradient2-detector', parameters: gradient2Options, create: gradient2 }),
    definePlugin({
      kind: 'saturationDetector',
      type: 'vegas-detector',
      parameters: vegasParameters,
      create: (parameters) => vegas(parameters),
    }),
    ...compositeDetectors,
    definePlugin({ kind: 'usageLimit', type: 'static-usage-limit-policy', parameters: staticUsageLimitOptions, create: staticUsageLimit }),
    definePlugin({ kind: 'usageLimit', type: 'priority-holdback-policy', parameters: priorityHoldbackOptions, create: priorityHoldback }),
    definePlugin({
      kind: 'usageLimit',
      type: 'interpolated-usage-limit-policy',
      parameters: interpolatedUsageLimitOptions,
      create: interpolatedUsageLimit,
    }),
    definePlugin({
      kind: 'usageLimit',
      type: 'soft-reflective-ceiling-policy',
      parameters: softReflectiveCeilingOptions,
      create: () => softReflectiveCeiling(),
    }),
    definePlugin({ kind: 'evictionFilter', type: 'sheddable-eviction-filter', parameters: none, create: sheddableOnly }),
    definePlugin({
      kind: 'evictionOrdering',
      type: 'priority-then-time-eviction-order-policy',
      parameters: none,
      create: priorityThenTime,
    }),
    definePlugin({ kind: 'evictionOrdering', type: 'least-progress-eviction-order-policy', parameters: none, create: leastProgress }),
    definePlugin({ kind: 'evictionOrdering', type: 'largest-footprint-eviction-order-policy', parameters: none, create: largestFootprint }),
    definePlugin({ kind: 'admission', type: 'always-admit', parameters: none, create: alwaysAdmit }),
    definePlugin({ kind: 'admission', type: 'all-workers-busy', parameters: none, create: refuseWhenAllBusy }),
    definePlugin({ kind: 'admission', type: 'reject-all', parameters: none, create: rejectAll }),
    definePlugin({ kind: 'admission', type: 'token-bucket', parameters: tokenBucketParameters, create: tokenBucket }),
    definePlugin({ kind: 'admission', type: 'tier-shed', parameters: tierShedOptions, create: tierShed }),
    definePlugin({ kind: 'admission', type: 'gaie-legacy', parameters: gaieLegacyOptions, create: gaieLegacy }),
    definePlugin({
      kind: 'admission',
      type: 'tenant-budgets',
      parameters: tenantBudgetsOptions,
      create: (parameters) => tenantBudgets(parameters),
    }),
    definePlugin({
      kind: 'admission',
      type: 'probabilistic-admitter',
      parameters: probabilisticAdmitterParameters,
      // A file cannot hold a source of randomness; a fixed one makes the same file decide the same.
      create: (parameters) => probabilisticAdmitter({ ...parameters, random: seededRandom(1) }),
    }),
    definePlugin({ kind: 'endpointPicker', type: 'least-loaded-picker', parameters: none, create: leastLoaded }),
    definePlugin({ kind: 'endpointPicker', type: 'least-kv-picker', parameters: none, create: leastKvUsage }),
    definePlugin({
      kind: 'endpointPicker',
      type: 'weighted-random-two-picker',
      parameters: powerOfTwoChoicesParameters,
      create: powerOfTwoChoices,
    }),
    definePlugin({
      kind: 'endpointPicker',
      type: 'affinity-picker',
      parameters: affinityParameters,
      create: (parameters) => affinity(parameters),
    }),
    definePlugin({
      kind: 'endpointFilter',
      type: 'label-filter',
      parameters: labelFilterParameters,
      create: (parameters) => labelFilter(parameters),
    }),
    definePlugin({ kind: 'endpointFilter', type: 'subset-hint-filter', parameters: none, create: () => subsetHint() }),
  ]);
  return registry;
}
