/** Reads YAML text or parsed objects into documents: the kind of each, its place in messages, and its body. */
import { describeValue } from '../base/faults/flow-config-error.js';
import type { Problems } from '../base/problems.js';
import { isRecord } from '../base/schema/element.js';
import { readYaml, withoutNulls } from './read-yaml.js';

/** One Kubernetes-style document. */
export interface ConfigDocument {
  readonly kind: string;
  /** Opens the paths of its problems: `EndpointPickerConfig default-config: `. */
  readonly at: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** YAML text (any number of documents), one parsed document, or a list of either. */
export type ConfigSource = string | object | readonly (string | object)[];

/** The documents of all sources; a value that is not a document is noted. */
export function readDocuments(source: ConfigSource, problems: Problems): ConfigDocument[] {
  const sources: readonly unknown[] = Array.isArray(source) ? source : [source];
  const values = sources.flatMap((part) =>
    typeof part === 'string' ? readYaml(part, problems.sink).map(({ value }) => value) : [part],
  );
  if (values.length === 0 && !problems.hasIssues) problems.add('', 'at least one document', 'none');
  return values.flatMap((value, index) => readDocument(value, index, problems) ?? []);
}

function readDocument(value: unknown, index: number, problems: Problems): ConfigDocument | undefined {
  const start = `document ${index + 1}`;
  if (!isRecord(value)) return problems.add(start, 'an object with apiVersion and kind', describeValue(value));
  const body = withoutNulls(value, ({ path, expected, got }) => problems.add(`${start}: ${path}`, expected, got));
  const { kind } = body;
  if (typeof kind !== 'string' || kind === '')
    return problems.add(`${start}: kind`, 'text that is not empty', describeValue(kind));
  const name = isRecord(body.metadata) ? body.metadata.name : undefined;
  return { kind, body, at: typeof name === 'string' ? `${kind} ${name}: ` : `${kind}: ` };
}
