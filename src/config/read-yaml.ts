/**
 * The one reader of YAML. Faults are issues with line and column; no file makes it throw, recurse without end, or fill
 * memory: the depth is checked, because the steps after the package's parser recurse.
 */
import { Composer, type CST, type Document, isAlias, isNode, LineCounter, Parser, visit } from 'yaml';
import { describeValue } from '../base/faults/flow-config-error.js';
import { joinPath } from '../base/schema/path.js';
import * as s from '../base/schema/schema.js';
import type { ConfigIssue, PluginRegistry, Schema } from '../index.js';

export type IssueSink = (issue: ConfigIssue) => undefined;

export const registryOption: Schema<PluginRegistry | undefined> = s.optional(
  s.objectWith<PluginRegistry>('a PluginRegistry, such as defaultRegistry()', 'kindOf', 'types', 'create', 'add'),
);

export interface YamlDocument {
  readonly value: unknown;
  /** `line 3, column 1` */
  readonly at: string;
}

/** Far more than any file needs, and far less than the stack holds. */
const maxLevels = 100;
const expectedLevels = `at most ${maxLevels} levels of nesting`;

/** The value of each document. Empty documents (a trailing `---`) and documents with issues are left out. */
export function readYaml(text: string, report: IssueSink): YamlDocument[] {
  const lines = new LineCounter();
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const shallow = tokens.filter((token) => {
    const deep = token.type === 'document' ? firstBelow(token.value, 1) : undefined;
    if (deep !== undefined) report({ path: at(deep.offset), expected: expectedLevels, got: 'more' });
    return deep === undefined;
  });
  const documents = new Composer({ lineCounter: lines, merge: true, prettyErrors: false }).compose(shallow);
  return [...documents].flatMap((document) => {
    // The first error of a document: the ones that follow are mostly its echo.
    const [error] = document.errors;
    if (error !== undefined) {
      report({ path: at(error.pos[0]), expected: 'valid YAML', got: error.message });
      return [];
    }
    const issues = [...tagIssues(document, at), ...aliasIssues(document, at)];
    for (const issue of issues) report(issue);
    if (issues.length > 0) return [];
    const start = at(document.contents?.range?.[0] ?? 0);
    try {
      const value: unknown = document.toJS();
      return value === null ? [] : [{ value, at: start }];
    } catch (error) {
      // The package gives up before aliases fill memory, by a ReferenceError; any other error is a wrong merge.
      const isTooLarge = error instanceof ReferenceError;
      const expected = isTooLarge ? 'aliases that stand for a file of reasonable size' : 'valid YAML';
      report({ path: start, expected, got: error instanceof Error ? error.message : String(error) });
      return [];
    }
  });
}

/** The one object in a source, YAML text or parsed; undefined when there is another number, which is reported. */
export function readOneObject(source: string | object, report: IssueSink): Record<string, unknown> | undefined {
  let isRight = true;
  const note: IssueSink = (issue) => {
    isRight = false;
    report(issue);
  };
  const [first, second] = typeof source === 'string' ? readYaml(source, note) : [{ value: source, at: '' }];
  if (second !== undefined) note({ path: second.at, expected: 'one document', got: 'another one' });
  if (!isRight) return undefined;
  if (s.isRecord(first?.value)) {
    const expected = 'a value that does not contain itself';
    const value = withoutNulls(first.value, note, (path, cycle) => note({ path, expected, got: describeValue(cycle) }));
    return isRight ? value : undefined;
  }
  const got = first === undefined ? 'an empty text' : describeValue(first.value);
  return report({ path: '', expected: 'one object', got });
}

function firstBelow(token: CST.Token | null | undefined, level: number): CST.Token | undefined {
  if (token == null || !('items' in token)) return undefined;
  if (level > maxLevels) return token;
  for (const { key, value } of token.items) {
    const found = firstBelow(key, level + 1) ?? firstBelow(value, level + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Tags that YAML does not know, such as `!env NAME`. No message shows the text, which may be a secret. */
function tagIssues({ warnings }: Document, at: (offset: number) => string): ConfigIssue[] {
  const expected = 'a value without a tag, or in quotes where it begins with "!"';
  const unknown = warnings.filter(({ code }) => code === 'TAG_RESOLVE_FAILED');
  return unknown.map(({ pos }) => ({ path: at(pos[0]), expected, got: 'an unknown tag' }));
}

/** Aliases whose anchor does not stand before them, and aliases inside of what they stand for. */
function aliasIssues(document: Document, at: (offset: number) => string): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  visit(document, (_key, node, path) => {
    if (!isAlias(node)) return;
    const target = node.resolve(document);
    const note = (expected: string, got: string): number =>
      issues.push({ path: at(node.range?.[0] ?? 0), expected, got });
    if (target === undefined) note('an alias of an anchor that stands before it', `*${node.source}`);
    else if (path.some((above) => isNode(above) && above === target))
      note('a value that does not contain itself', `*${node.source}, inside of &${node.source}`);
  });
  return issues;
}

type Copy = { readonly value: unknown; readonly levels: number };

/**
 * A copy without the keys that have no value: absent, as in Kubernetes. A value that contains itself stays, and
 * `onCycle` gets its path; one that lies too deep is reported once. O(size).
 */
export function withoutNulls(
  source: Record<string, unknown>,
  report: IssueSink,
  onCycle: (path: string, value: unknown) => void = () => {},
): Record<string, unknown> {
  const above = new Set<unknown>();
  const copies = new Map<unknown, Copy>();
  let isTooDeep = false;

  function copyOf(value: unknown, path: string): Copy {
    if (!s.isRecord(value) && !Array.isArray(value)) return { value, levels: 0 };
    if (above.has(value)) {
      onCycle(path, value);
      return { value, levels: 0 };
    }
    const known = copies.get(value);
    if (above.size + (known?.levels ?? 1) > maxLevels) {
      if (!isTooDeep) report({ path, expected: expectedLevels, got: 'more' });
      isTooDeep = true;
      return { value: undefined, levels: 0 };
    }
    if (known !== undefined) return known;
    above.add(value);
    const copy = copyInside(value, path);
    above.delete(value);
    copies.set(value, copy);
    return copy;
  }
  function copyInside(whole: readonly unknown[] | Record<string, unknown>, path: string): Copy {
    const isList = Array.isArray(whole);
    let levels = 0;
    const entries = Object.entries(whole).flatMap(([key, given]) => {
      if (given === null && !isList) return [];
      const part = copyOf(given, joinPath(path, [isList ? Number(key) : key]));
      levels = Math.max(levels, part.levels);
      return [[key, part.value] as const];
    });
    const value = isList ? entries.map(([, part]) => part) : Object.fromEntries(entries);
    return { value, levels: levels + 1 };
  }

  return copyOf(source, '').value as Record<string, unknown>;
}
