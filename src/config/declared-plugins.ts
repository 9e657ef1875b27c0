/** The `plugins` list: the plugins that it declares, by the names that the rest of the file refers to. */
import { didYouMean } from '../base/faults/did-you-mean.js';
import { configError } from '../base/faults/flow-config-error.js';
import type { Problems } from '../base/problems.js';
import { put } from '../base/put.js';
import { below, joinPath } from '../base/schema/path.js';
import * as s from '../base/schema/schema.js';
import { asKind, FlowConfigError, nounOf, type PluginRegistry, type Schema, standsFor } from '../index.js';
import type { ConfigurableKind, PluginReferences, Plugins } from '../types/index.js';

/** Types that need no declaration: as in llm-d they are there anyway. */
const defaultTypes = [
  'global-strict-fairness-policy',
  'fcfs-ordering-policy',
  'utilization-detector',
  'static-usage-limit-policy',
  'strict-band-selection-policy',
];

interface Instance {
  readonly type: string;
  /** Undefined when the registry does not know the type. */
  readonly kind: ConfigurableKind | undefined;
  readonly parameters: unknown;
  readonly at: string;
  /** Undefined until it is made, and when the type is unknown or the parameters are wrong. */
  plugin: Plugins[ConfigurableKind] | undefined;
  /** A plugin is made on its first use, so that others may refer to it from before its place in the list. */
  state: 'declared' | 'being made' | 'made';
}

const entrySchema = s.object({
  type: s.text('the type name of a plugin'),
  name: s.optional(s.text()),
  parameters: s.optional(s.value('an object', s.isRecord)),
});

export class DeclaredPlugins implements PluginReferences {
  private readonly instances = new Map<string, Instance>();
  private readonly registry: PluginRegistry;
  private readonly problems: Problems;
  private readonly at: string;
  private readonly silent: Readonly<Record<string, object>>;

  /** `at` opens the paths of problems. `silent`: by type, the parameters of plugins that do not say otherwise. */
  constructor(registry: PluginRegistry, problems: Problems, at: string, silent: Readonly<Record<string, object>> = {}) {
    this.registry = registry;
    this.problems = problems;
    this.at = at;
    this.silent = silent;
  }

  /** Makes every plugin of the list. Types that the registry does not know are left alone: they are the scheduler's. */
  declareAll(entries: readonly unknown[]): void {
    const foreignTypes = new Set<string>();
    // First the names, so that a plugin finds those that come later; then, in this order, faults and plugins.
    const steps = entries.map((candidate, index) =>
      this.declare(candidate, joinPath(this.at, ['plugins', index]), foreignTypes),
    );
    for (const step of steps) step();
    const known = this.registry.types();
    const ignored = [...foreignTypes].map((type) => type + didYouMean(type, known)).join(', ');
    if (ignored !== '') this.problems.warn(this.at, `plugins of types unknown to headgate are ignored: ${ignored}`);
  }

  /** Returns the step that is left: to report the problems of the entry, or to make the plugin. */
  private declare(candidate: unknown, at: string, foreignTypes: Set<string>): () => void {
    const verdict = s.validate(entrySchema, candidate, at);
    if (!verdict.ok) return () => verdict.issues.forEach(this.problems.sink);
    const { type, name = type, parameters } = verdict.value;
    if (this.instances.has(name))
      return () => this.problems.add(`${at}.name`, 'a name that no other plugin has', JSON.stringify(name));
    const instance = this.add(name, type, parameters, at);
    if (instance.kind === undefined) foreignTypes.add(type);
    return () => this.make(instance);
  }

  /** A plugin by its name: a declared one, else the registered type with its defaults. Nothing means `defaultName`. */
  reference<K extends ConfigurableKind>(kind: K, defaultName?: string): Schema<Plugins[K]> {
    const theName = `the name of ${nounOf(kind)}`;
    const schema = s.element<Plugins[K]>((name, report) => {
      const instance =
        typeof name === 'string' ? (this.instances.get(name) ?? this.imply(name, name === defaultName)) : undefined;
      if (typeof name !== 'string' || instance === undefined) {
        const known = this.namesOf(kind);
        report(`${theName}, one of ${known.join(', ')}${typeof name === 'string' ? didYouMean(name, known) : ''}`);
      } else if (instance.kind === undefined) {
        const known = this.registry.types(kind);
        const meant = didYouMean(instance.type, known);
        const got = `"${name}", of the unknown type "${instance.type}"`;
        report(`${theName} of a known type (${known.join(', ')})${meant}`, [], got);
      } else if (!standsFor(instance.kind, kind)) {
        report(theName, [], `"${name}", which is ${nounOf(instance.kind)}`);
      } else {
        // A plugin of the right kind fulfils the contract. One that could not be made is reported where it is declared.
        const plugin = this.make(instance);
        return plugin && asKind(kind, plugin);
      }
      return undefined;
    });
    return defaultName === undefined ? schema : s.otherwise(schema, defaultName);
  }

  /** @throws FlowConfigError when `name` is wrong, or names the plugin that is being made. */
  resolve<K extends ConfigurableKind>(kind: K, name: string): Plugins[K] {
    if (this.instances.get(name)?.state === 'being made')
      throw configError('plugins', '', `${nounOf(kind)} that does not refer back to this one`, JSON.stringify(name));
    s.parse(this.reference(kind), name, 'plugins');
    const plugin = this.instances.get(name)?.plugin;
    if (plugin === undefined) throw new FlowConfigError('plugins', []);
    return asKind(kind, plugin);
  }

  /** A plugin that is not declared; a file that is silent is not warned of it. */
  private imply(name: string, isDefault: boolean): Instance | undefined {
    if (this.registry.kindOf(name) === undefined) return undefined;
    if (!isDefault && !defaultTypes.includes(name))
      this.problems.warn(this.at, `plugins: ${name} is not declared, and gets its default parameters`);
    return this.add(name, name, undefined, `${this.at}plugins`);
  }

  private add(name: string, type: string, parameters: unknown, at: string): Instance {
    const kind = this.registry.kindOf(type);
    return put(this.instances, name, { type, kind, parameters, at, plugin: undefined, state: 'declared' });
  }

  private make(instance: Instance): Plugins[ConfigurableKind] | undefined {
    if (instance.kind === undefined || instance.state !== 'declared') return instance.plugin;
    instance.state = 'being made';
    instance.plugin = this.create(instance);
    instance.state = 'made';
    return instance.plugin;
  }

  private create({ type, parameters, at }: Instance): Plugins[ConfigurableKind] | undefined {
    try {
      const silent = this.silent[type];
      const all = silent === undefined ? parameters : { ...silent, ...(parameters as object | undefined) };
      return this.registry.create(type, all, this);
    } catch (error) {
      const expected = `parameters that ${type} can be made with`;
      const failed = { path: 'parameters', expected, got: `the error ${String(error)}` };
      const issues = error instanceof FlowConfigError ? error.issues : [failed];
      for (const issue of issues) this.problems.sink({ ...issue, path: below(at, issue.path) });
      return undefined;
    }
  }

  private namesOf(kind: ConfigurableKind): string[] {
    const declared = [...this.instances].flatMap(([name, instance]) => (instance.kind === kind ? [name] : []));
    return [...new Set([...declared, ...this.registry.types(kind)])].sort();
  }
}
