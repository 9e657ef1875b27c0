/** Modules with plugins of your own, from `plugins` of a file and from `--import`. Their code runs in this process. */
import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Problems } from '../../base/problems.js';
import * as s from '../../base/schema/schema.js';
import { readOneObject, registryOption } from '../../config/read-yaml.js';
import { defaultRegistry, FlowConfigError, type PluginRegistry } from '../../index.js';
import type { PluginDefinition } from '../../types/index.js';

export interface ImportPluginsOptions {
  /** The folder that relative paths of the file begin at. @default the working directory */
  readonly from?: string | undefined;
  /** Modules besides those of the file; they need not have plugins. @default none */
  readonly modules?: readonly string[] | undefined;
  /** The registry that the plugins are added to. @default defaultRegistry() */
  readonly registry?: PluginRegistry | undefined;
}

const optionsSchema = s.object({
  from: s.optional(s.text('a folder')),
  modules: s.optional(s.list(s.text('a module')), []),
  registry: registryOption,
});

/**
 * Imports the modules that a gateway file names (`plugins: ./policies.mjs`, or such an entry of the list), once in the
 * life of a process, and adds what they export as `default` or `plugins`: what `definePlugin` returns, or a list of it.
 * @throws (rejects) FlowConfigError that lists every module that cannot be used
 * @example
 * const registry = await importPlugins(source, { from: dirname(path) });
 * const gateway = await createGateway(loadGatewayConfig(source, { registry }));
 */
export async function importPlugins(
  source: string | object,
  options: ImportPluginsOptions = {},
): Promise<PluginRegistry> {
  const settings = s.parse(optionsSchema, options, 'importPlugins');
  const { from = process.cwd(), modules, registry = defaultRegistry() } = settings;
  const all = [...modules.map(asked), ...modulesOf(readOneObject(source, () => {})?.plugins)];
  const problems = new Problems();
  let grown = registry;
  for (const { path, name, needsPlugins } of all) {
    try {
      const definitions = definitionsOf(await import(specifierOf(name, from)));
      if (definitions.length > 0) grown = grown.add(...definitions);
      else if (needsPlugins) problems.add(path, 'a module whose default export are plugins', JSON.stringify(name));
    } catch (error) {
      if (error instanceof FlowConfigError)
        for (const issue of error.issues) problems.sink({ ...issue, path: `${path}: ${issue.path}` });
      else problems.add(path, 'a module that can be imported', `${JSON.stringify(name)} (${String(error)})`);
    }
  }
  if (problems.hasIssues) throw problems.toError('plugins');
  return grown;
}

type Module = Readonly<{ path: string; name: string; needsPlugins: boolean }>;

const asked = (name: string): Module => ({ path: '--import', name, needsPlugins: false });

/** The modules among the entries of `plugins`. */
export function modulesOf(plugins: unknown): Module[] {
  const entries: readonly unknown[] = Array.isArray(plugins) ? plugins : [plugins];
  return entries.flatMap((name, index) => {
    const path = Array.isArray(plugins) ? `plugins[${index}]` : 'plugins';
    return typeof name === 'string' ? [{ path, name, needsPlugins: true }] : [];
  });
}

/** The entries that make plugins; undefined where there are none, as in a file without the section. */
export function withoutModules(plugins: unknown): unknown {
  if (typeof plugins === 'string') return undefined;
  return Array.isArray(plugins) ? plugins.filter((entry) => typeof entry !== 'string') : plugins;
}

/** A path, or the name of a package. */
function specifierOf(name: string, from: string): string {
  return /^\.{1,2}[\\/]/.test(name) || isAbsolute(name) ? pathToFileURL(resolve(from, name)).href : name;
}

function definitionsOf(exported: Readonly<Record<string, unknown>>): PluginDefinition[] {
  const { default: given = exported.plugins } = exported;
  if (given === undefined) return [];
  return (Array.isArray(given) ? given : [given]) as PluginDefinition[];
}
