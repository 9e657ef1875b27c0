/**
 * The one reader of YAML, for configuration files, gateway files and `headgate check`. Text that is not YAML, and aliases that cannot be
 * resolved, are issues with line and column; nothing that a file can hold makes it throw, recurse without end, or fill memory.
 */
import { type Document, isAlias, isNode, LineCounter, parseAllDocuments, visit } from 'yaml';
import { type ConfigIssue, schemas } from '../index.js';

/** Takes one thing that is wrong. */
export type IssueSink = (issue: ConfigIssue) => void;

/** One document of a text. */
export interface YamlDocument {
  readonly value: unknown;
  /** `line 3, column 1` */
  readonly at: string;
}

/** The value of each document. Empty documents (a trailing `---`) and documents with issues are left out. */
export function readYaml(text: string, report: IssueSink): YamlDocument[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, merge: true, prettyErrors: false });
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  return [...documents].flatMap((document) => {
    // The first error of a document: the ones that follow are mostly its echo.
    const [error] = document.errors;
    if (error !== undefined) {
      report({ path: at(error.pos[0]), expected: 'valid YAML', got: error.message });
      return [];
    }
    const issues = aliasIssues(document, at);
    for (const issue of issues) report(issue);
    if (issues.length > 0) return [];
    const start = at(document.contents?.range?.[0] ?? 0);
    try {
      const value: unknown = document.toJS();
      return value === null ? [] : [{ value, at: start }];
    } catch (error) {
      // The package counts what aliases multiply to, and gives up before they fill memory.
      const got = error instanceof Error ? error.message : String(error);
      report({ path: start, expected: 'aliases that stand for a file of reasonable size', got });
      return [];
    }
  });
}

/** The one object that a source holds, as YAML text or parsed; undefined when there is another number of them, which is reported. */
export function readOneObject(source: string | object, report: IssueSink): Record<string, unknown> | undefined {
  let isRight = true;
  const note: IssueSink = (issue) => {
    isRight = false;
    report(issue);
  };
  const [first, second] = typeof source === 'string' ? readYaml(source, note) : [{ value: source, at: '' }];
  if (second !== undefined) note({ path: second.at, expected: 'one document', got: 'another one' });
  if (!isRight) return undefined;
  if (isRecord(first?.value)) {
    const expected = 'a value that does not contain itself';
    const value = withoutNulls(first.value, (path, cycle) => note({ path, expected, got: schemas.describeValue(cycle) }));
    return isRight ? value : undefined;
  }
  report({ path: '', expected: 'one object', got: first === undefined ? 'an empty text' : schemas.describeValue(first.value) });
  return undefined;
}

/** Aliases whose anchor does not stand before them, and aliases inside of what they stand for. */
function aliasIssues(document: Document, at: (offset: number) => string): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  visit(document, (_key, node, path) => {
    if (!isAlias(node)) return;
    const target = node.resolve(document);
    const place = at(node.range?.[0] ?? 0);
    if (target === undefined) {
      issues.push({ path: place, expected: 'an alias of an anchor that stands before it', got: `*${node.source}` });
    } else if (path.some((above) => isNode(above) && above === target)) {
      issues.push({
        path: place,
        expected: 'a value that does not contain itself',
        got: `*${node.source}, inside of &${node.source}`,
      });
    }
  });
  return issues;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * A copy without the keys that have no value: they are as good as absent, as in Kubernetes. A value that contains itself, which only a
 * parsed source can hold, is left as it is, and told to `onCycle` with its path. O(size).
 */
export function withoutNulls(
  source: Record<string, unknown>,
  onCycle: (path: string, value: unknown) => void = () => {},
): Record<string, unknown> {
  const above = new Set<unknown>();
  const copies = new Map<unknown, unknown>();

  function copyOf(value: unknown, path: string): unknown {
    if (!isRecord(value) && !Array.isArray(value)) return value;
    if (above.has(value)) {
      onCycle(path, value);
      return value;
    }
    if (copies.has(value)) return copies.get(value);
    above.add(value);
    const copy = Array.isArray(value)
      ? value.map((entry, index) => copyOf(entry, schemas.joinPath(path, [index])))
      : copyOfRecord(value, path);
    above.delete(value);
    copies.set(value, copy);
    return copy;
  }
  function copyOfRecord(record: Record<string, unknown>, path: string): Record<string, unknown> {
    const given = Object.entries(record).filter(([, value]) => value !== null);
    return Object.fromEntries(given.map(([key, value]) => [key, copyOf(value, schemas.joinPath(path, [key]))]));
  }

  return copyOf(source, '') as Record<string, unknown>;
}
