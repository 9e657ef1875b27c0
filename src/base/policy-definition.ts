/** How configuration files make a policy: a definition beside its code. `plugins/built-ins.ts` lists them all. */
import { object, type Schema } from './schema/element.js';

/** `R` is what `create` may look up: the plugins that parameters name, for policies that are made of others. */
export interface PolicyDefinition<K extends string, P, T, R = unknown> {
  readonly kind: K;
  /** The name in configuration files; the policies that `create` makes bear it too. */
  readonly type: string;
  readonly parameters: Schema<P>;
  create(parameters: P, references: R): T;
}

/** The definition of a policy without parameters, under the type that it bears itself: any key is an error. */
// @__NO_SIDE_EFFECTS__
export function withoutParameters<K extends string, T extends { readonly type: string }>(
  kind: K,
  create: () => T,
): PolicyDefinition<K, object, T> {
  return { kind, type: create().type, parameters: object({}), create };
}
