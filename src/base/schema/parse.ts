/** Reads a value by a schema: returns it parsed, or all problems, each with its path, what was expected, what came. */
import { type $ZodRawIssue, safeParse } from 'zod/v4/core';
import { closest } from '../faults/did-you-mean.js';
import { type ConfigIssue, describeValue, FlowConfigError } from '../faults/flow-config-error.js';
import type { Report, Schema } from './element.js';

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

/** The parsed value, or every problem. Paths begin with `at`. `words` are for issues that bring none. */
export function validate<T>(schema: Schema<T>, value: unknown, at = '', words: Words = wordsOfShapes): Verdict<T> {
  const issues: ConfigIssue[] = [];
  const parsed = readBy(
    schema,
    value,
    (expected, path = [], got = describeValue(valueAt(value, path))) =>
      issues.push({ path: joinPath(at, path), expected, got }),
    words,
  );
  return issues.length === 0 ? { ok: true, value: parsed as T } : { ok: false, issues };
}

/** The parsed value. With problems, which are reported, it is undefined. */
export function readBy<T>(
  schema: Schema<T>,
  value: unknown,
  report: Report,
  words: Words = wordsOfShapes,
): T | undefined {
  // Only here does zod hand out the schema of an issue, so the keys that it knows are noted.
  const askedOf = new Map<unknown, unknown>();
  const result = safeParse(schema, value, {
    error: (issue) => {
      if (issue.code === 'unrecognized_keys') askedOf.set(issue.keys, issue.inst);
      return words(issue);
    },
  });
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    if (issue.code !== 'unrecognized_keys')
      report(
        issue.message,
        issue.path,
        issue.code === 'custom' ? (issue.params?.got as string | undefined) : undefined,
      );
    else
      for (const key of issue.keys)
        report(expectedKeys(key, askedOf.get(issue.keys)), [...issue.path, key], 'an unknown key');
  }
  return undefined;
}

/** What an issue expects, where it does not say so itself. */
export type Words = (issue: $ZodRawIssue) => string;

/** What objects and lists expect; elements bring words of their own. */
function wordsOfShapes(issue: $ZodRawIssue): string {
  return issue.code === 'invalid_type' && issue.expected === 'array' ? 'an array' : 'an object';
}

/** The known keys, and the one that an unknown key was probably meant to be: of the object itself, or further down. */
function expectedKeys(key: string, schema: unknown): string {
  const known = keysBelow(schema);
  const keys = known.filter((path) => !path.includes('.'));
  if (keys.length === 0) return 'no keys';
  const leafOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);
  const leaf = closest(key, keys) ?? closest(key, [...new Set(known.map(leafOf))]);
  const suggestion = known.find((path) => path === leaf) ?? known.find((path) => leafOf(path) === leaf);
  return `one of the keys ${keys.join(', ')}${suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`}`;
}

/** The keys of an object schema, and below them those of the objects inside, as `limits.maxRequests`. */
function keysBelow(schema: unknown): string[] {
  const { shape = {}, innerType } = (schema as Schema<unknown> & { _zod: { def: Inside } })._zod.def;
  if (innerType !== undefined) return keysBelow(innerType);
  return Object.entries(shape).flatMap(([key, inner]) => [key, ...keysBelow(inner).map((path) => `${key}.${path}`)]);
}

/** What objects, and the schemas around them, are made of. */
interface Inside {
  readonly shape?: Readonly<Record<string, unknown>>;
  readonly innerType?: unknown;
}

export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
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
