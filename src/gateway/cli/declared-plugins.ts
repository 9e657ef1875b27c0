/** The `plugins` lists of a file as they stand there, for checks that the made plugins cannot answer. */
import { readYaml } from '../../config/read-yaml.js';

export interface DeclaredPlugin {
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The plugins that a file without faults declares. */
export function declaredPlugins(text: string): DeclaredPlugin[] {
  return readYaml(text, () => {}).flatMap(({ value }) => {
    const plugins: unknown = Reflect.get(Object(value), 'plugins');
    return Array.isArray(plugins) ? plugins.flatMap(read) : [];
  });
}

function read(entry: unknown): DeclaredPlugin[] {
  const { type, parameters }: { type?: unknown; parameters?: unknown } = { ...Object(entry) };
  return typeof type === 'string' ? [{ type, parameters: { ...Object(parameters) } }] : [];
}
