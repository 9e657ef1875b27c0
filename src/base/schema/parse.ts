/**
 * Reads a value by a schema. Returns the parsed value, or every problem at once, each with its path, what was expected
 * and what came.
 */
import { type ConfigIssue, describeValue, FlowConfigError } from '../faults/flow-config-error.js';
import type { Schema } from './element.js';

/** The result of reading a value: the parsed value, or a list of problems. */
export type Verdict<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly ConfigIssue[] };

/**
 * The parsed value.
 * @throws FlowConfigError that lists every problem; `subject` opens its message and says what was being read.
 */
export function parse<T>(schema: Schema<T>, value: unknown, subject: string): T {
  const verdict = validate(schema, value);
  if (!verdict.ok) throw new FlowConfigError(subject, verdict.issues);
  return verdict.value;
}

/** The parsed value, or every problem. Paths begin with `at`. */
export function validate<T>(schema: Schema<T>, value: unknown, at = ''): Verdict<T> {
  const issues: ConfigIssue[] = [];
  const parsed = schema.read(value, (expected, path = [], got = describeValue(valueAt(value, path))) => {
    issues.push({ path: joinPath(at, path), expected, got });
  });
  return issues.length === 0 ? { ok: true, value: parsed } : { ok: false, issues };
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let here = value;
  for (const key of path) {
    if (typeof here !== 'object' || here === null) return undefined;
    here = Reflect.get(here, key);
  }
  return here;
}

/** `bands[1].limits.maxRequests` */
export function joinPath(start: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => below(text, segment(key)), start);
}

function segment(key: PropertyKey): string {
  if (typeof key === 'number') return `[${key}]`;
  return typeof key === 'string' && /^[\w$-]+$/.test(key)
    ? key
    : `[${typeof key === 'symbol' ? String(key) : JSON.stringify(key)}]`;
}

/** `path`, which is relative to `start`, from the top. A start that ends with a space is a heading, not a path. */
export function below(start: string, path: string): string {
  const joint = start === '' || path === '' || start.endsWith(' ') || path.startsWith('[') ? '' : '.';
  return start + joint + path;
}
