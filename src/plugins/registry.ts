/** Type names → plugins: what configuration files may ask for. */
import { didYouMean } from '../base/faults/did-you-mean.js';
import { describeValue, FlowConfigError } from '../base/faults/flow-config-error.js';
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
      if (!isDefinition(definition)) {
        const issue = { path: 'definition', expected: 'what definePlugin returns', got: describeValue(definition) };
        throw new FlowConfigError('PluginRegistry', [issue]);
      }
      const other = byType.get(definition.type);
      if (other !== undefined) {
        const got = `"${definition.type}", which is ${nounOf(other.kind)} already`;
        throw new FlowConfigError('PluginRegistry', [{ path: 'type', expected: 'a type name that is not taken', got }]);
      }
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
    return [...this.definitions.values()]
      .flatMap((known) => (kind === undefined || known.kind === kind ? [known.type] : []))
      .sort();
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
    throw new FlowConfigError('PluginRegistry', [{ path: 'type', expected, got: JSON.stringify(type) }]);
  }

  resolve<K extends ConfigurableKind>(kind: K, name: string): Plugins[K] {
    const its = this.kindOf(name);
    if (its !== undefined && standsFor(its, kind)) return asKind(kind, this.create(name));
    const known = this.types(kind);
    const expected = `the name of ${nounOf(kind)}, one of ${known.join(', ')}${didYouMean(name, known)}`;
    throw new FlowConfigError('PluginRegistry', [{ path: '', expected, got: JSON.stringify(name) }]);
  }
}

function isDefinition(candidate: Partial<PluginDefinition> | null | undefined): boolean {
  return typeof candidate?.type === 'string' && typeof candidate.create === 'function';
}
