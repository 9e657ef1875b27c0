/** The kinds of plugins that options and files name: the contract of each, and the shape by which it is known. */
import { type AdmissionPolicy, admissionPolicyShape } from '../admission/admission-policy.js';
import { type PluginShape, pluginOfShape } from '../base/plugin-shape.js';
import type { Schema } from '../base/schema/element.js';
import { type EndpointFilter, endpointFilterShape } from '../endpoints/filters/endpoint-filter.js';
import { type EndpointPicker, endpointPickerShape } from '../endpoints/pickers/endpoint-picker.js';
import type { EvictionFilter, EvictionOrdering } from '../eviction/eviction-policy.js';
import { evictionFilterShape, evictionOrderingShape } from '../eviction/eviction-policy.js';
import { type UsageLimitPolicy, usageLimitPolicyShape } from '../gate/ceilings/usage-limit-policy.js';
import { type Constraint, constraintShape } from '../gate/constraint.js';
import { detectorFor } from '../gate/parts.js';
import { type SaturationDetector, saturationDetectorShape } from '../gate/saturation-detector.js';
import { type BandOrderPolicy, bandOrderPolicyShape } from '../tiers/1-priority/band-order-policy.js';
import { type FairnessPolicy, fairnessPolicyShape } from '../tiers/2-fairness/fairness-policy.js';
import { type OrderingPolicy, orderingPolicyShape } from '../tiers/3-ordering/ordering-policy.js';

/** Kind → contract. */
export interface Plugins {
  fairness: FairnessPolicy;
  ordering: OrderingPolicy;
  saturationDetector: SaturationDetector;
  constraint: Constraint;
  usageLimit: UsageLimitPolicy;
  bandOrder: BandOrderPolicy;
  endpointPicker: EndpointPicker;
  endpointFilter: EndpointFilter;
  admission: AdmissionPolicy;
  evictionFilter: EvictionFilter;
  evictionOrdering: EvictionOrdering;
}

export type ConfigurableKind = keyof Plugins;

const shapes: { readonly [K in ConfigurableKind]: PluginShape<Plugins[K]> } = {
  fairness: fairnessPolicyShape,
  ordering: orderingPolicyShape,
  saturationDetector: saturationDetectorShape,
  constraint: constraintShape,
  usageLimit: usageLimitPolicyShape,
  bandOrder: bandOrderPolicyShape,
  endpointPicker: endpointPickerShape,
  endpointFilter: endpointFilterShape,
  admission: admissionPolicyShape,
  evictionFilter: evictionFilterShape,
  evictionOrdering: evictionOrderingShape,
};

/** All of them, in the order above. */
export const configurableKinds: readonly ConfigurableKind[] = /* @__PURE__ */ Object.keys(shapes) as ConfigurableKind[];

/** The kind with its article: `an ordering policy`. */
export function nounOf(kind: ConfigurableKind): string {
  return shapes[kind].noun;
}

/** True when a file may name a plugin of kind `given` where one of kind `asked` belongs. */
export function standsFor(given: ConfigurableKind, asked: ConfigurableKind): boolean {
  return given === asked || (given === 'constraint' && asked === 'saturationDetector');
}

/** A plugin that stands for one of kind `asked`, as such: a constraint becomes a part of a detector. */
export function asKind<K extends ConfigurableKind>(asked: K, plugin: Plugins[ConfigurableKind]): Plugins[K] {
  const isInside = asked === 'saturationDetector' && 'withRoomFor' in plugin && !('saturation' in plugin);
  return (isInside ? detectorFor(plugin as Constraint) : plugin) as Plugins[K];
}

/** A plugin object of one kind: a type name and the contract's methods. */
export function pluginOf<K extends ConfigurableKind>(kind: K): Schema<Plugins[K]> {
  return pluginOfShape<Plugins[K]>(shapes[kind]);
}
