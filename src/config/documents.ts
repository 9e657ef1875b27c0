/** From YAML text or parsed objects to documents: who it is, and what stands in it. */
import { LineCounter, parseAllDocuments } from 'yaml';
import { schemas } from '../index.js';
import type { Problems } from './problems.js';

/** One Kubernetes-style document. */
export interface ConfigDocument {
  readonly kind: string;
  /** Opens the paths of its problems: `EndpointPickerConfig default-config: `. */
  readonly at: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** YAML text (any number of documents), one parsed document, or a list of either. */
export type ConfigSource = string | object | readonly (string | object)[];

/** The documents of all sources; what is no document is noted. */
export function readDocuments(source: ConfigSource, problems: Problems): ConfigDocument[] {
  const sources: readonly unknown[] = Array.isArray(source) ? source : [source];
  const values = sources.flatMap((part) => (typeof part === 'string' ? readYaml(part, problems) : [part]));
  if (values.length === 0 && !problems.hasIssues) problems.add({ path: '', expected: 'at least one document', got: 'none' });
  return values.flatMap((value, index) => {
    const document = readDocument(value, index, problems);
    return document === undefined ? [] : [document];
  });
}

/** The one object that a source holds, whatever its kind; undefined when there is another number of them, which is noted. */
export function readRecord(source: string | object, problems: Problems): Record<string, unknown> | undefined {
  const values = typeof source === 'string' ? readYaml(source, problems) : [source];
  if (problems.hasIssues) return undefined;
  const [value] = values;
  if (values.length === 1 && isRecord(value)) return withoutNulls(value, new Set());
  const documents = values.length === 0 ? 'an empty text' : `${values.length} documents`;
  problems.add({ path: '', expected: 'one object', got: values.length === 1 ? schemas.describeValue(value) : documents });
  return undefined;
}

/** What stands in each document; syntax errors are noted, and empty documents (a trailing `---`) are left out. */
function readYaml(text: string, problems: Problems): unknown[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, merge: true, prettyErrors: false });
  return [...documents].flatMap((document) => {
    // The first error of a document: the ones that follow are mostly its echo.
    const [error] = document.errors;
    if (error !== undefined) {
      const { line, col } = lines.linePos(error.pos[0]);
      problems.add({ path: `line ${line}, column ${col}`, expected: 'valid YAML', got: error.message });
      return [];
    }
    try {
      const value: unknown = document.toJS();
      return value === null ? [] : [value];
    } catch (error) {
      // An alias without its anchor, or aliases that multiply without bound.
      problems.add({ path: '', expected: 'valid YAML', got: error instanceof Error ? error.message : String(error) });
      return [];
    }
  });
}

function readDocument(value: unknown, index: number, problems: Problems): ConfigDocument | undefined {
  if (!isRecord(value)) {
    const expected = 'an object with apiVersion and kind';
    problems.add({ path: `document ${index + 1}`, expected, got: schemas.describeValue(value) });
    return undefined;
  }
  const body = withoutNulls(value, new Set());
  const { kind } = body;
  if (typeof kind !== 'string' || kind === '') {
    problems.add({ path: `document ${index + 1}: kind`, expected: 'text that is not empty', got: schemas.describeValue(kind) });
    return undefined;
  }
  const name = isRecord(body.metadata) ? body.metadata.name : undefined;
  return { kind, body, at: typeof name === 'string' ? `${kind} ${name}: ` : `${kind}: ` };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Keys without a value are as good as absent, as in Kubernetes. `above` keeps a document that contains itself from being walked for ever. */
function withoutNulls(record: Record<string, unknown>, above: Set<unknown>): Record<string, unknown> {
  const within = new Set(above).add(record);
  const clean = (value: unknown): unknown => {
    if (within.has(value)) return value;
    if (Array.isArray(value)) return value.map(clean);
    return isRecord(value) ? withoutNulls(value, within) : value;
  };
  return Object.fromEntries(Object.entries(record).flatMap(([key, value]) => (value === null ? [] : [[key, clean(value)]])));
}
