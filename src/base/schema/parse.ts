/** From a schema and a value to the parsed value, or to every problem at once, each with its path, what was expected and what came. */
import * as z from 'zod/mini';
import { type ConfigIssue, describeValue, FlowConfigError } from '../faults/flow-config-error.js';
import { closest } from './suggest.js';
import { describeExpected, knownKeysOf } from './zod-messages.js';

/** What a value turned out to be: parsed, or a list of problems. */
export type Verdict<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly issues: readonly ConfigIssue[] };

/**
 * The parsed value.
 * @throws FlowConfigError that lists every problem; `subject` opens its message and says what was being read.
 */
export function parse<T>(schema: z.core.$ZodType<T>, value: unknown, subject: string): T {
  const verdict = validate(schema, value);
  if (!verdict.ok) throw new FlowConfigError(subject, verdict.issues);
  return verdict.value;
}

/** The parsed value, or every problem. Paths begin with `at`. */
export function validate<T>(schema: z.core.$ZodType<T>, value: unknown, at = ''): Verdict<T> {
  // Zod hands the schema of an issue to the error map only: the keys it knows are noted there.
  const knownKeys = new Map<unknown, readonly string[]>();
  const result = z.safeParse(schema, value, {
    error: (issue) => {
      if (issue.code === 'unrecognized_keys') knownKeys.set(issue.keys, knownKeysOf(issue.inst));
      return describeExpected(issue);
    },
  });
  if (result.success) return { ok: true, value: result.data };
  const issues = result.error.issues.flatMap((issue) => {
    const path = joinPath(at, issue.path);
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => unknownKey(joinPath(path, [key]), key, knownKeys.get(issue.keys) ?? []));
    }
    const got: unknown = issue.code === 'custom' ? issue.params?.got : undefined;
    return { path, expected: issue.message, got: typeof got === 'string' ? got : describeValue(valueAt(value, issue.path)) };
  });
  return { ok: false, issues };
}

function unknownKey(path: string, key: string, known: readonly string[]): ConfigIssue {
  const keys = known.filter((candidate) => !candidate.includes('.'));
  const suggestion = closest(key, keys) ?? closestBelow(key, known);
  const question = suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`;
  return { path, expected: keys.length === 0 ? 'no keys' : `one of the keys ${keys.join(', ')}${question}`, got: 'an unknown key' };
}

/** The key further down that was probably meant, e.g. `limits.maxRequests`. */
function closestBelow(key: string, known: readonly string[]): string | undefined {
  const leafOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);
  const leaf = closest(key, [...new Set(known.map(leafOf))]);
  return known.find((path) => leafOf(path) === leaf);
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
  return typeof key === 'string' && /^[\w$-]+$/.test(key) ? key : `[${typeof key === 'symbol' ? String(key) : JSON.stringify(key)}]`;
}

/** `path`, which is relative to `start`, from the top. A start that ends with a space is a heading, not a path. */
export function below(start: string, path: string): string {
  const joint = start === '' || path === '' || start.endsWith(' ') || path.startsWith('[') ? '' : '.';
  return start + joint + path;
}
