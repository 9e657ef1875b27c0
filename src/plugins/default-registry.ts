/** Every plugin that comes with the package, under the type names of llm-d. */
import * as z from 'zod/mini';
import { leastLoaded } from '../endpoints/least-loaded.js';
import { sheddableOnly } from '../eviction/sheddable-filter.js';
import { largestFootprint, leastProgress, priorityThenTime } from '../eviction/victim-orders.js';
import { concurrencyDetector, concurrencyDetectorOptions } from '../gate/concurrency-detector.js';
import { staticUsageLimit, staticUsageLimitOptions } from '../gate/static-usage-limit.js';
import { utilizationDetector, utilizationDetectorOptions } from '../gate/utilization-detector.js';
import { object } from '../options/element.js';
import { globalStrict } from '../tiers/2-fairness/global-strict.js';
import { roundRobin } from '../tiers/2-fairness/round-robin.js';
import { edf } from '../tiers/3-ordering/edf.js';
import { fcfs } from '../tiers/3-ordering/fcfs.js';
import { sloDeadline } from '../tiers/3-ordering/slo-deadline.js';
import { definePlugin } from './define-plugin.js';
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
    definePlugin({ kind: 'usageLimit', type: 'static-usage-limit-policy', parameters: staticUsageLimitOptions, create: staticUsageLimit }),
    definePlugin({ kind: 'evictionFilter', type: 'sheddable-eviction-filter', parameters: none, create: sheddableOnly }),
    definePlugin({
      kind: 'evictionOrdering',
      type: 'priority-then-time-eviction-order-policy',
      parameters: none,
      create: priorityThenTime,
    }),
    definePlugin({ kind: 'evictionOrdering', type: 'least-progress-eviction-order-policy', parameters: none, create: leastProgress }),
    definePlugin({ kind: 'evictionOrdering', type: 'largest-footprint-eviction-order-policy', parameters: none, create: largestFootprint }),
    definePlugin({ kind: 'endpointPicker', type: 'least-loaded-picker', parameters: none, create: leastLoaded }),
  ]);
  return registry;
}
