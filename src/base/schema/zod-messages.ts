/** What a zod issue expected, in words that complete "expected …". Schemas that bring their own words are left alone. */
import type * as z from 'zod/mini';
import { $ZodDefault, $ZodObject, $ZodOptional } from 'zod/v4/core';

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

const units: Readonly<Record<string, string>> = { string: ' characters', array: ' entries', set: ' entries', map: ' entries' };

/** The words for an issue whose schema has none. */
export function describeExpected(issue: z.core.$ZodRawIssue): string {
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

/** The branches of a union that failed at the value itself; a branch that failed deeper inside is told by its first problem. */
function describeBranches(branches: readonly (readonly z.core.$ZodIssue[])[]): string {
  const phrases = branches.flatMap(([first]) =>
    first === undefined ? [] : [`${first.path.length > 0 ? `at ${first.path.join('.')} ` : ''}${first.message}`],
  );
  return [...new Set(phrases)].join(' or ') || 'a valid value';
}

/** The keys of an object schema, and below them those of the objects inside, as `limits.maxRequests`. */
export function knownKeysOf(schema: unknown): string[] {
  if (!(schema instanceof $ZodObject)) return [];
  return Object.entries(schema._zod.def.shape).flatMap(([key, inner]) => [
    key,
    ...knownKeysOf(unwrap(inner)).map((below) => `${key}.${below}`),
  ]);
}

function unwrap(schema: unknown): unknown {
  return schema instanceof $ZodOptional || schema instanceof $ZodDefault ? unwrap(schema._zod.def.innerType) : schema;
}
