/** How a plugin gets a type name, so that configuration files can ask for it. */
import { configError, FlowConfigError } from '../base/faults/flow-config-error.js';
import { noteOrigin, type PluginOrigin } from '../base/plugin-origin.js';
import { below } from '../base/schema/path.js';
import * as s from '../base/schema/schema.js';
import { type ConfigurableKind, configurableKinds, nounOf, type Plugins, pluginOf } from './kinds.js';
import { isParameterSchema, type ParameterSchema, readParameters } from './parameters.js';

/** The plugins that parameters may refer to, by the names that a configuration file gives them. */
export interface PluginReferences {
  /** The plugin of that name. @throws FlowConfigError: none, or without issues one that could not be made */
  resolve<K extends ConfigurableKind>(kind: K, name: string): Plugins[K];
}

/** The argument of `definePlugin`. */
export interface PluginBlueprint<K extends ConfigurableKind, P> {
  kind: K;
  /** The name in configuration files. */
  type: string;
  /** Of the parameters: zod 4, or Standard Schema that answers at once. zod objects take no keys they do not know. */
  parameters: ParameterSchema<P>;
  /** Makes one plugin; called once for each entry of a file. `references` finds the plugins that parameters name. */
  create(parameters: P, references: PluginReferences): Plugins[K];
}

/** A type of plugin that a registry can make. */
export interface PluginDefinition<K extends ConfigurableKind = ConfigurableKind> {
  readonly kind: K;
  readonly type: string;
  /** The schema of its parameters, for editors. */
  readonly parameters?: ParameterSchema<unknown> | undefined;
  /** From parameters of a file; none is `{}`. No `references`, no names. @throws FlowConfigError with every problem */
  create(parameters?: unknown, references?: PluginReferences): Plugins[K];
}

const noReferences: PluginReferences = {
  resolve(kind, name) {
    const got = `${JSON.stringify(name)}, where no names are known`;
    throw configError('plugin references', '', `the name of ${nounOf(kind)}`, got);
  },
};

const blueprint = (): s.Schema<unknown> =>
  s.object({
    kind: s.oneOf(...configurableKinds),
    type: s.text('the type name that configuration files use'),
    parameters: s.value('a zod 4 schema, or another Standard Schema', isParameterSchema),
    create: s.callable(),
  });

/**
 * A plugin for `PluginRegistry.add`. @throws FlowConfigError
 * @example
 * const lifo = definePlugin({
 *   kind: 'ordering',
 *   type: 'lifo-ordering-policy',
 *   parameters: z.strictObject({}),
 *   create: () => ({ type: 'lifo-ordering-policy', compare: (a, b) => b.sequence - a.sequence }),
 * });
 */
export function definePlugin<K extends ConfigurableKind, P>(definition: PluginBlueprint<K, P>): PluginDefinition<K> {
  s.parse(blueprint(), definition, 'definePlugin');
  const { kind, type } = definition;
  const product = pluginOf(kind);
  return {
    kind,
    type,
    parameters: definition.parameters,
    create(parameters, references = noReferences) {
      const verdict = readParameters(definition.parameters, parameters ?? {});
      if (!verdict.ok) throw new FlowConfigError(type, verdict.issues);
      const found: object[] = [];
      const named: PluginReferences = {
        resolve(askedKind, name) {
          const plugin = references.resolve(askedKind, name);
          found.push(plugin);
          return plugin;
        },
      };
      const plugin = createInside(definition, verdict.value, named);
      const made = s.parse(product, plugin, `${type}: create must return ${nounOf(kind)}`);
      noteOrigin(made, new FileOrigin(definition, verdict.value, found));
      return made;
    },
  };
}

class FileOrigin implements PluginOrigin {
  private readonly definition: object;
  /** As its schema read them, defaults filled in. */
  private readonly parameters: unknown;
  /** The plugins that its parameters name. */
  private readonly references: readonly object[];

  constructor(definition: object, parameters: unknown, references: readonly object[]) {
    this.definition = definition;
    this.parameters = parameters;
    this.references = references;
  }

  isLike(other: PluginOrigin): boolean {
    if (!(other instanceof FileOrigin) || other.definition !== this.definition) return false;
    // Nothing but the object itself: a kept policy would go on asking a detector that is not in force any more.
    const isEach = other.references.every((reference, i) => reference === this.references[i]);
    return isEach && other.references.length === this.references.length && isEqual(other.parameters, this.parameters);
  }
}

/** Values as files have them: of everything but lists and plain objects, only one and the same value is equal. */
function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (!isPlain(a) || !isPlain(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]));
}

function isPlain(candidate: unknown): candidate is Record<string, unknown> {
  if (typeof candidate !== 'object' || candidate === null) return false;
  const prototype: unknown = Object.getPrototypeOf(candidate);
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null;
}

/** The plugin; problems that its factory reports get paths below `parameters`. */
function createInside<K extends ConfigurableKind, P>(
  definition: PluginBlueprint<K, P>,
  parameters: P,
  references: PluginReferences,
): Plugins[K] {
  try {
    return definition.create(parameters, references);
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    const issues = error.issues.map((issue) => ({ ...issue, path: below('parameters', issue.path) }));
    throw new FlowConfigError(definition.type, issues);
  }
}
