/** The kinds of plugins that options and configuration files name, and what an object must have to be one. */
import type { AdmissionPolicy } from '../admission/admission-policy.js';
import { element, type Report, type Schema } from '../base/schema/element.js';
import type { EndpointFilter } from '../endpoints/filters/endpoint-filter.js';
import type { EndpointPicker } from '../endpoints/pickers/endpoint-picker.js';
import type { EvictionFilter, EvictionOrdering } from '../eviction/eviction-policy.js';
import type { UsageLimitPolicy } from '../gate/ceilings/usage-limit-policy.js';
import type { SaturationDetector } from '../gate/saturation-detector.js';
import type { FairnessPolicy } from '../tiers/2-fairness/fairness-policy.js';
import type { OrderingPolicy } from '../tiers/3-ordering/ordering-policy.js';

/** Kind → contract. */
export interface Plugins {
  fairness: FairnessPolicy;
  ordering: OrderingPolicy;
  saturationDetector: SaturationDetector;
  usageLimit: UsageLimitPolicy;
  endpointPicker: EndpointPicker;
  endpointFilter: EndpointFilter;
  admission: AdmissionPolicy;
  evictionFilter: EvictionFilter;
  evictionOrdering: EvictionOrdering;
}

export type ConfigurableKind = keyof Plugins;

interface KindDescription {
  /** With its article, for messages. */
  readonly noun: string;
  readonly example: string;
  readonly required: readonly string[];
  readonly optional: readonly string[];
}

const kinds: Readonly<Record<ConfigurableKind, KindDescription>> = {
  fairness: { noun: 'a fairness policy', example: 'roundRobin()', required: ['createSelector'], optional: [] },
  ordering: { noun: 'an ordering policy', example: 'fcfs()', required: ['compare'], optional: [] },
  saturationDetector: {
    noun: 'a saturation detector',
    example: 'concurrencyDetector({ maxConcurrency: 15 }), or a function that returns the saturation',
    required: ['saturation'],
    optional: ['filter', 'subscribe', 'dispatched', 'released'],
  },
  usageLimit: { noun: 'a usage-limit policy', example: 'staticUsageLimit()', required: ['computeLimits'], optional: ['dispatched'] },
  endpointPicker: { noun: 'an endpoint picker', example: 'leastLoaded()', required: ['pick'], optional: [] },
  endpointFilter: { noun: 'an endpoint filter', example: "labelFilter({ label: 'model' })", required: ['classOf', 'keep'], optional: [] },
  admission: { noun: 'an admission policy', example: 'tokenBucket()', required: ['admit'], optional: ['released'] },
  evictionFilter: { noun: 'an eviction filter', example: 'sheddableOnly()', required: ['accepts'], optional: [] },
  evictionOrdering: { noun: 'an eviction ordering', example: 'priorityThenTime()', required: ['compare'], optional: [] },
};

/** All of them. */
export const configurableKinds: readonly ConfigurableKind[] = [
  'fairness',
  'ordering',
  'saturationDetector',
  'usageLimit',
  'endpointPicker',
  'endpointFilter',
  'admission',
  'evictionFilter',
  'evictionOrdering',
];

/** The kind with its article: `an ordering policy`. */
export function nounOf(kind: ConfigurableKind): string {
  return kinds[kind].noun;
}

/** A plugin object of one kind: a type name and the contract's methods. */
export function pluginOf<K extends ConfigurableKind>(kind: K): Schema<Plugins[K]> {
  return element((candidate, report) => readPlugin(kind, candidate, report));
}

/** The plugin that `candidate` is; otherwise reports what it lacks and returns undefined. */
export function readPlugin<K extends ConfigurableKind>(kind: K, candidate: unknown, report: Report): Plugins[K] | undefined {
  return isPlugin(kind, candidate, report) ? candidate : undefined;
}

function isPlugin<K extends ConfigurableKind>(kind: K, candidate: unknown, report: Report): candidate is Plugins[K] {
  const { noun, example, required, optional } = kinds[kind];
  if (typeof candidate !== 'object' || candidate === null || Array.isArray(candidate)) {
    report(`${noun}, such as ${example}`);
    return false;
  }
  const typeOf = (key: string): string => typeof Reflect.get(candidate, key);
  const hasType = typeOf('type') === 'string' && Reflect.get(candidate, 'type') !== '';
  if (!hasType) report(`the type name of ${noun}`, ['type']);
  const isSharedQueue = kind === 'fairness' && Reflect.get(candidate, 'sharedQueue') === true;
  const missing = isSharedQueue ? [] : required.filter((method) => typeOf(method) !== 'function');
  for (const method of missing) report(`a method: ${noun} must have "${method}"`, [method]);
  const wrong = optional.filter((method) => typeOf(method) !== 'function' && typeOf(method) !== 'undefined');
  for (const method of wrong) report(`a method, or nothing: ${noun} may have "${method}"`, [method]);
  return hasType && missing.length === 0 && wrong.length === 0;
}
