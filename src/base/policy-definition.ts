/** How configuration files make a policy: a definition beside its code. `plugins/built-ins.ts` lists them by kind. */
import * as s from './schema/schema.js';

/** `R` is what `create` may look up: the plugins that parameters name, for policies that are made of others. */
export interface Definition<T, R = unknown> {
  /** The name in configuration files; the policies that `create` makes bear it too. */
  readonly type: string;
  readonly parameters: s.Schema<unknown>;
  create(parameters: unknown, references: R): T;
}

/** The definition of a policy that `create` makes of what the schema `parameters` reads. */
/* @__NO_SIDE_EFFECTS__ */ export function define<P, T, R>(
  type: string,
  parameters: s.Schema<P>,
  create: (parameters: P, references: R) => T,
): Definition<T, R> {
  return { type, parameters, create };
}

/** The definition of a policy without parameters, under the type that it bears itself: any key is an error. */
/* @__NO_SIDE_EFFECTS__ */ export function withoutParameters<T extends { readonly type: string }>(
  create: () => T,
): Definition<T> {
  return define(create().type, s.object({}), create);
}
