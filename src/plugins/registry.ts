/** Type names → plugins: what configuration files may ask for. */
import { didYouMean } from '../base/faults/did-you-mean.js';
import { configError, describeValue } from '../base/faults/flow-config-error.js';
import type { PluginDefinition, PluginReferences } from './definition.js';
import { asKind, type ConfigurableKind, nounOf, type Plugins, standsFor } from './kinds.js';
import type { ParameterSchema } from './parameters.js';

/** A set of plugin types. It never changes: `add` returns another registry. */
export class PluginRegistry implements PluginReferences {
  private readonly definitions: ReadonlyMap<string, PluginDefinition>;

  /** @throws FlowConfigError when a type comes twice. */
  constructor(definitions: Iterable<PluginDefinition> = []) {
    const byType = new Map<string, PluginDefinition>();
    for (const definition of definitions) {
      if (typeof definition?.type !== 'string' || typeof definition.create !== 'function')
        throw configError('PluginRegistry', 'definition', 'what definePlugin returns', describeValue(definition));
      const other = byType.get(definition.type);
      const got = other && `"${definition.type}", which is ${nounOf(other.kind)} already`;
      if (got !== undefined) throw configError('PluginRegistry', 'type', 'a type name that is not taken', got);
      byType.set(definition.type, definition);
    }
    this.definitions = byType;
  }

  /** This registry and these types. @throws FlowConfigError when a type is taken, or something is no definition. */
  add(...definitions: readonly PluginDefinition[]): PluginRegistry {
    return new PluginRegistry([...this.definitions.values(), ...definitions]);
  }

  /** The kind of a type; undefined when the type is unknown. */
  kindOf(type: string): ConfigurableKind | undefined {
    return this.definitions.get(type)?.kind;
  }

  /** The schema of the parameters of a type; undefined when the type is unknown, or its definition does not say. */
  parametersOf(type: string): ParameterSchema<unknown> | undefined {
    return this.definitions.get(type)?.parameters;
  }

  /** The known types, of one kind or of all, in alphabetical order. */
  types(kind?: ConfigurableKind): string[] {
    const known = [...this.definitions.values()].filter((each) => kind === undefined || each.kind === kind);
    return known.map(({ type }) => type).sort();
  }

  /**
   * From parameters of a file. `references` finds named plugins; by default a name is a type, for a new plugin without
   * parameters. @throws FlowConfigError when the type is unknown or the parameters are wrong
   */
  create(type: string, parameters?: unknown, references: PluginReferences = this): Plugins[ConfigurableKind] {
    const definition = this.definitions.get(type);
    if (definition !== undefined) return definition.create(parameters, references);
    const known = this.types();
    const expected = `one of the known plugin types ${known.join(', ') || '(none)'}${didYouMean(type, known)}`;
    throw configError('PluginRegistry', 'type', expected, JSON.stringify(type));
  }

  resolve<K extends ConfigurableKind>(kind: K, name: string): Plugins[K] {
    const its = this.kindOf(name);
    if (its !== undefined && standsFor(its, kind)) return asKind(kind, this.create(name));
    const known = this.types(kind);
    const expected = `the name of ${nounOf(kind)}, one of ${known.join(', ')}${didYouMean(name, known)}`;
    throw configError('PluginRegistry', '', expected, JSON.stringify(name));
  }
}
