/** Finds the position of a value in the text of a YAML file: line and column, for messages. */
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import type { ConfigIssue } from '../../index.js';
import { parsePath } from './value-path.js';

/** Adds line and column to the paths of issues. A missing value has the position of the object that lacks it. */
export function withPositions(text: string, issues: readonly ConfigIssue[]): ConfigIssue[] {
  // Text that nests too deep must not be parsed: its issue has its place already.
  if (issues.every(hasPlace)) return [...issues];
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false });
  return issues.map((issue) => {
    if (hasPlace(issue)) return issue;
    const offset = offsetOf(contents as Node | null, parsePath(issue.path) ?? []);
    const { line, col } = lines.linePos(offset);
    return {
      ...issue,
      path: issue.path === '' ? `line ${line}, column ${col}` : `line ${line}, column ${col}: ${issue.path}`,
    };
  });
}

function hasPlace({ path }: ConfigIssue): boolean {
  return /\bline \d+/.test(path);
}

function offsetOf(root: Node | null, path: readonly (string | number)[]): number {
  let node: unknown = root;
  let offset = root?.range?.[0] ?? 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
      if (pair === undefined) return offset;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      if (node === undefined) return offset;
    } else return offset;
    offset = (isScalar(node) ? (node as Node).range?.[0] : undefined) ?? offset;
    if (isSeq(node) || isMap(node))
      offset = isSeq(node) || path.at(-1) === part ? offset : ((node as Node).range?.[0] ?? offset);
  }
  return offset;
}
