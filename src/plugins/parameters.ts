/** Parameters that an author describes with zod, whose messages get our words, or with Standard Schema. */
import {
  $ZodAsyncError,
  type $ZodIssue,
  type $ZodObject,
  type $ZodRawIssue,
  $ZodType,
  clone,
  safeParse,
} from 'zod/v4/core';
import { type ConfigIssue, describeValue } from '../base/faults/flow-config-error.js';
import { expectedKeys, keysBelow } from '../base/schema/known-keys.js';
import { joinPath, valueAt } from '../base/schema/path.js';
import type * as s from '../base/schema/schema.js';

/** A schema that reads a `P`: of zod 4, or of any library that speaks Standard Schema (standardschema.dev). */
export type ParameterSchema<P> = $ZodType<P> | StandardSchema<P>;

interface StandardSchema<P> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: P } | undefined;
    validate(value: unknown): StandardResult<P> | Promise<StandardResult<P>>;
  };
}

type StandardResult<P> =
  | { readonly value: P; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

const answersLater: ConfigIssue = {
  path: 'parameters',
  expected: 'a schema that answers at once',
  got: 'one that answers later',
};

export function isParameterSchema(candidate: unknown): candidate is ParameterSchema<unknown> {
  const isOne = (typeof candidate === 'object' || typeof candidate === 'function') && candidate !== null;
  return isOne && '~standard' in candidate;
}

/** The parameters, or every problem, with paths below `parameters`. */
export function readParameters<P>(schema: ParameterSchema<P>, given: unknown): s.Verdict<P> {
  if (schema instanceof $ZodType) {
    try {
      return readByZod(withoutUnknownKeys(schema), given);
    } catch (error) {
      if (error instanceof $ZodAsyncError) return { ok: false, issues: [answersLater] };
      throw error;
    }
  }
  const result = schema['~standard'].validate(given);
  if (result instanceof Promise) return { ok: false, issues: [answersLater] };
  if (result.issues === undefined) return { ok: true, value: result.value };
  const issues = result.issues.map(({ message, path = [] }) => {
    const keys = path.map((part) => (typeof part === 'object' ? part.key : part));
    return { path: joinPath('parameters', keys), expected: message, got: describeValue(valueAt(given, keys)) };
  });
  return { ok: false, issues };
}

/** Zod's plain objects drop the keys they do not know; a misspelt parameter must not vanish. */
function withoutUnknownKeys<S extends $ZodType>(schema: S): S {
  if (!isObject(schema) || schema._zod.def.catchall !== undefined) return schema;
  return clone(schema, { ...schema._zod.def, catchall: new $ZodType({ type: 'never' }) });
}

/** By the kind and not by the class, which would be bytes in each bundle. */
function isObject<S extends $ZodType>(schema: S): schema is S & $ZodObject {
  return schema._zod.def.type === 'object';
}

function readByZod<P>(schema: $ZodType<P>, given: unknown): s.Verdict<P> {
  // Only here does zod hand out the schema of an issue, so the keys that it knows are noted.
  const askedOf = new Map<unknown, unknown>();
  const read = safeParse(schema, given, {
    error: (issue) => {
      if (issue.code === 'unrecognized_keys') askedOf.set(issue.keys, issue.inst);
      return describeExpected(issue);
    },
  });
  if (read.success) return { ok: true, value: read.data };
  const at = (keys: readonly PropertyKey[]): string => joinPath('parameters', keys);
  const issuesOf = (issue: $ZodIssue): readonly ConfigIssue[] => {
    const { path } = issue;
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({
        path: at([...path, key]),
        expected: expectedKeys(key, keysBelow(askedOf.get(issue.keys))),
        got: 'an unknown key',
      }));
    const told: unknown = issue.code === 'custom' ? issue.params?.got : undefined;
    const got = typeof told === 'string' ? told : describeValue(valueAt(given, path));
    return [{ path: at(path), expected: issue.message, got }];
  };
  return { ok: false, issues: read.error.issues.flatMap(issuesOf) };
}

const things: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
  tuple: 'an array',
  function: 'a function',
  null: 'null',
  undefined: 'nothing',
};

const units: Record<string, string> = { string: ' characters', array: ' entries', set: ' entries', map: ' entries' };

/** The expectation that an issue reports, in words that complete "expected …". */
function describeExpected(issue: $ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return things[issue.expected] ?? `a ${issue.expected}`;
    case 'too_small':
      return `${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${units[issue.origin] ?? ''}`;
    case 'too_big':
      return `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${units[issue.origin] ?? ''}`;
    case 'invalid_value':
      return `${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map((value) => JSON.stringify(value) ?? String(value)).join(', ')}`;
    case 'not_multiple_of':
      return `a multiple of ${issue.divisor}`;
    case 'invalid_format':
      return `text in the form ${issue.pattern ?? issue.format}`;
    case 'invalid_union':
      return describeBranches(issue.errors);
    default:
      return 'a valid value';
  }
}

/** The branches of a union that failed at the value itself; one that failed deeper is told by its first problem. */
function describeBranches(branches: readonly (readonly $ZodIssue[])[]): string {
  const phrases = branches.flatMap(([first]) =>
    first === undefined ? [] : [`${first.path.length > 0 ? `at ${first.path.join('.')} ` : ''}${first.message}`],
  );
  return [...new Set(phrases)].join(' or ') || 'a valid value';
}
