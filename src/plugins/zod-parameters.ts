/**
 * Parameters that a plugin's author describes with zod: their schema as one of ours, with messages in the same words
 * and unknown keys as errors. The built-in policies do without zod, so that a bundle without a registry does too.
 */
import * as z from 'zod/mini';
import { $ZodDefault, $ZodObject, $ZodOptional, $ZodType, clone } from 'zod/v4/core';
import { element, type Schema, type Shape } from '../base/schema/element.js';
import { expectedKeys } from '../base/schema/suggest.js';

export type ZodSchema<T> = z.core.$ZodType<T>;

export function isZodSchema(candidate: unknown): candidate is ZodSchema<unknown> {
  return candidate instanceof $ZodType;
}

/** The zod schema as a schema of options. Its own messages stay; where it brings none, ours are used. */
export function readByZod<T>(given: ZodSchema<T>): Schema<T> {
  const schema = withoutUnknownKeys(given);
  return element((candidate, report) => {
    // Zod hands the schema of an issue to the error map only, so the keys that it knows are noted there.
    const shapes = new Map<unknown, Shape>();
    const result = z.safeParse(schema, candidate, {
      error: (issue) => {
        if (issue.code === 'unrecognized_keys') shapes.set(issue.keys, shapeOf(issue.inst).shape ?? {});
        return describeExpected(issue);
      },
    });
    if (result.success) return result.data;
    for (const issue of result.error.issues) {
      if (issue.code !== 'unrecognized_keys') report(issue.message, issue.path);
      else
        for (const key of issue.keys)
          report(expectedKeys(key, shapes.get(issue.keys) ?? {}), [...issue.path, key], 'an unknown key');
    }
    return undefined;
  });
}

/** Zod's plain objects drop the keys they do not know; a misspelt parameter must not vanish. */
function withoutUnknownKeys<S extends z.core.$ZodType>(schema: S): S {
  if (!(schema instanceof $ZodObject) || schema._zod.def.catchall !== undefined) return schema;
  return clone(schema, { ...schema._zod.def, catchall: z.never() });
}

/** The keys of a zod object and of the objects inside, for suggestions. */
function shapeOf(schema: unknown): Schema<unknown> {
  const inner = unwrap(schema);
  const read = (value: unknown): unknown => value;
  if (!(inner instanceof $ZodObject)) return { read };
  const entries = Object.entries(inner._zod.def.shape).map(([key, below]) => [key, shapeOf(below)] as const);
  return { read, shape: Object.fromEntries(entries) };
}

function unwrap(schema: unknown): unknown {
  return schema instanceof $ZodOptional || schema instanceof $ZodDefault ? unwrap(schema._zod.def.innerType) : schema;
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

const units: Readonly<Record<string, string>> = {
  string: ' characters',
  array: ' entries',
  set: ' entries',
  map: ' entries',
};

/** The expectation that an issue reports, in words that complete "expected …". */
function describeExpected(issue: z.core.$ZodRawIssue): string {
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

/**
 * The branches of a union that failed at the value itself; a branch that failed deeper inside is told by its first
 * problem.
 */
function describeBranches(branches: readonly (readonly z.core.$ZodIssue[])[]): string {
  const phrases = branches.flatMap(([first]) =>
    first === undefined ? [] : [`${first.path.length > 0 ? `at ${first.path.join('.')} ` : ''}${first.message}`],
  );
  return [...new Set(phrases)].join(' or ') || 'a valid value';
}
