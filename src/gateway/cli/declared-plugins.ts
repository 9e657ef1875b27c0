/** The `plugins` lists of a file as they stand there, for checks that the made plugins cannot answer. */
import { parseAllDocuments } from 'yaml';

export interface DeclaredPlugin {
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

export function declaredPlugins(text: string): DeclaredPlugin[] {
  return [...parseAllDocuments(text, { merge: true })].flatMap((document) => {
    const plugins: unknown = Reflect.get(Object(document.toJS()), 'plugins');
    return Array.isArray(plugins) ? plugins.flatMap(read) : [];
  });
}

function read(entry: unknown): DeclaredPlugin[] {
  const { type, parameters }: { type?: unknown; parameters?: unknown } = { ...Object(entry) };
  return typeof type === 'string' ? [{ type, parameters: { ...Object(parameters) } }] : [];
}
