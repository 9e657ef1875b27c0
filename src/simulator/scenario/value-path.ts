/** Paths into a scenario, such as `traffic[acme].arrivals.rate`, for `--sweep` and `--find`: read, found, replaced. */
import { configError } from '../../base/faults/flow-config-error.js';

/** Keys of objects, and indices or names of list entries. */
type ValuePath = readonly (string | number)[];

/** Names by which entries of a list can be meant instead of their index. */
const nameKeys = ['name', 'tenant', 'class', 'type', 'id', 'model', 'priority'] as const;

/** The parts of a path; undefined when it is no path. */
export function parsePath(text: string): ValuePath | undefined {
  const parts: (string | number)[] = [];
  const part = /\.?([\w$-]+)|\[("(?:[^"\\]|\\.)*"|[^\]]+)\]/y;
  while (part.lastIndex < text.length) {
    const match = part.exec(text);
    if (match === null) return undefined;
    const [, key, inBrackets = ''] = match;
    if (key !== undefined) parts.push(key);
    else if (/^\d+$/.test(inBrackets)) parts.push(Number(inBrackets));
    else parts.push(inBrackets.startsWith('"') ? String(JSON.parse(inBrackets)) : inBrackets);
  }
  return parts.length === 0 ? undefined : parts;
}

/** The index of the entry that is meant; -1 when there is none. */
function indexIn(list: readonly unknown[], part: string | number): number {
  if (typeof part === 'number' && part < list.length) return part;
  return list.findIndex((entry) => nameKeys.some((key) => String(Reflect.get(Object(entry), key)) === String(part)));
}

/** The value at a path, or undefined. */
function valueAt(root: unknown, path: ValuePath): unknown {
  return path.reduce<unknown>((here, part) => {
    if (Array.isArray(here)) return here[indexIn(here, part)];
    return typeof here === 'object' && here !== null ? Reflect.get(here, part) : undefined;
  }, root);
}

/** A copy with another value at the path; undefined when it leads nowhere. Missing objects on the way are made. */
function withValue(root: unknown, path: ValuePath, value: unknown): unknown {
  const [part, ...rest] = path;
  if (part === undefined) return value;
  if (Array.isArray(root)) {
    const index = indexIn(root, part);
    if (index < 0) return undefined;
    const entry = withValue(root[index], rest, value);
    return entry === undefined ? undefined : root.map((other: unknown, at) => (at === index ? entry : other));
  }
  if (typeof root === 'object' || root === undefined) {
    const entry = withValue(root === undefined ? undefined : Reflect.get(Object(root), part), rest, value);
    return entry === undefined ? undefined : { ...Object(root), [part]: entry };
  }
  return undefined;
}

/**
 * With another value at `path`: `servers[0].slots`, `traffic[acme].arrivals.rate`; entries by index, name, tenant, type
 * or priority; `gate.NAME` of the detector. @throws FlowConfigError when the path leads nowhere
 */
export function withScenarioValue(
  source: Readonly<Record<string, unknown>>,
  path: string,
  value: unknown,
): Record<string, unknown> {
  const parts = resolvePath(source, path);
  const changed = parts && withValue(source, parts, value);
  if (changed !== undefined) return changed as Record<string, unknown>;
  const expected = 'a path in the scenario such as servers[0].slots or gate.maxConcurrency';
  throw configError('path', path, expected, 'a path that leads nowhere');
}

/** The value that stands there now, if any. */
export function scenarioValue(source: Readonly<Record<string, unknown>>, path: string): unknown {
  const parts = resolvePath(source, path);
  return parts && valueAt(source, parts);
}

function resolvePath(source: Readonly<Record<string, unknown>>, path: string): ValuePath | undefined {
  const parts = parsePath(path);
  if (parts?.[0] !== 'gate' || parts.length < 2) return parts;
  const detector =
    valueAt(source, ['flowControl', 'saturationDetector', 'pluginRef']) ??
    valueAt(source, ['saturationDetector', 'pluginRef']);
  return detector === undefined ? undefined : ['plugins', String(detector), 'parameters', ...parts.slice(1)];
}
