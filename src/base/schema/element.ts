/**
 * Options are read by zod schemas. This façade gives them our words: each element says what it expects, completing
 * "expected …; got …", and its JSON Schema. Objects, lists and records are made of elements; `parse` tells of every
 * problem with its path. All are of zod's core, because the methods of zod and zod/mini would be bytes in each bundle.
 * The functions that make schemas say that they have no side effects, so that bundlers drop those of unused policies.
 */
import * as zod from 'zod/v4/core';
import { closest } from '../faults/did-you-mean.js';
import { type ConfigIssue, describeValue, FlowConfigError } from '../faults/flow-config-error.js';
import { joinPath, valueAt } from './path.js';

/** A zod schema that reads a `T`. */
export type Schema<T> = zod.$ZodType<T>;

export type Shape = Readonly<Record<string, Schema<unknown>>>;

/** Reports what was expected, at which path below the value in hand, and what came if that does not show it. */
export type Report = (expected: string, path?: readonly PropertyKey[], got?: string) => undefined;

/** What JSON Schema says of a value, for editors: keywords, or a function of what it says of other schemas. */
export type Json = Keywords | ((of: (schema: Schema<unknown>) => Keywords) => Keywords);
export type Keywords = Readonly<Record<string, unknown>>;

/** A schema of one function, which returns what the value stands for, or reports, so that rules see the raw value. */
/* @__NO_SIDE_EFFECTS__ */ export function element<T>(
  read: (value: unknown, report: Report) => T | undefined,
  json?: Json,
): Schema<T> {
  const check = checkBy((payload) => {
    const { value: given } = payload;
    payload.value = read(given, reportTo(payload)) ?? given;
  });
  const def = { type: 'unknown' as const, checks: [check], json };
  return typed(new zod.$ZodUnknown(def));
}

/** The schema with its type: zod's constructors are not generic. */
/* @__NO_SIDE_EFFECTS__ */ export function typed<T>(schema: Schema<unknown>): Schema<T> {
  return schema as Schema<T>;
}

/** A check of zod's, which may replace the value. With `when` it runs on these, also if other problems are known. */
/* @__NO_SIDE_EFFECTS__ */ function checkBy(
  check: (payload: zod.ParsePayload) => void,
  when?: (payload: zod.ParsePayload) => boolean,
): zod.$ZodCheck<never> {
  const made = new zod.$ZodCheck({ check: 'custom', when });
  made._zod.check = check;
  return made;
}

export function reportTo({ value, issues }: zod.ParsePayload): Report {
  return (message, path = [], got) => {
    issues.push({ code: 'custom', message, path: [...path], input: value, params: { got } });
  };
}

/* @__NO_SIDE_EFFECTS__ */ export function value<T>(
  expected: string,
  isRight: (value: unknown) => value is T,
  json?: Json,
): Schema<T> {
  return element((given, report) => {
    if (isRight(given)) return given;
    return report(expected);
  }, json);
}

/* @__NO_SIDE_EFFECTS__ */ export function anything(json?: Json): Schema<unknown> {
  return optional(element((given) => given, json));
}

/** A function; its parameters and its result cannot be checked. */
/* @__NO_SIDE_EFFECTS__ */ export function callable<F>(expected = 'a function'): Schema<F> {
  return value(expected, (given): given is F => typeof given === 'function');
}

/** An object that has these methods: it may come from the package's other copy (ESM, CommonJS) or be the host's own. */
/* @__NO_SIDE_EFFECTS__ */ export function objectWith<T extends object>(
  expected: string,
  ...methods: readonly (keyof T & string)[]
): Schema<T> {
  const hasMethods = (given: object): boolean => methods.every((key) => typeof Reflect.get(given, key) === 'function');
  return value(expected, (given): given is T => typeof given === 'object' && given !== null && hasMethods(given));
}

/** A value that may be left out, and then is `otherwise`. */
export function optional<T>(schema: Schema<T>): Schema<T | undefined>;
export function optional<T>(schema: Schema<T>, otherwise: T): Schema<T>;
/* @__NO_SIDE_EFFECTS__ */ export function optional<T>(innerType: Schema<T>, otherwise?: T): Schema<T | undefined> {
  if (otherwise === undefined) return typed(new zod.$ZodOptional({ type: 'optional', innerType }));
  return typed(new zod.$ZodDefault({ type: 'default', innerType, defaultValue: otherwise }));
}

type OptionalKeys<S extends Shape> = { [K in keyof S]: undefined extends zod.output<S[K]> ? K : never }[keyof S];
type Flat<T> = { [K in keyof T]: T[K] };

/** The type that an object of this shape is read as. */
export type Output<S extends Shape> = Flat<
  { [K in Exclude<keyof S, OptionalKeys<S>>]: zod.output<S[K]> } & { [K in OptionalKeys<S>]?: zod.output<S[K]> }
>;

/** A condition over fields of an object. It runs if fields failed, too: those are NaN (numbers) or the raw value. */
export type Rule<T> = (value: T, report: Report) => void;

/** An object with these keys and no others, that keeps the rules. */
/* @__NO_SIDE_EFFECTS__ */ export function object<S extends Shape>(
  shape: S,
  ...rules: readonly Rule<Output<S>>[]
): Schema<Output<S>> {
  const catchall = new zod.$ZodNever({ type: 'never' });
  return typed(new zod.$ZodObject({ type: 'object', shape, catchall, checks: [leaveOut(), ...rules.map(checkOf)] }));
}

/** Zod keeps the keys of what was given as undefined, which is the same as left out. */
/* @__NO_SIDE_EFFECTS__ */ function leaveOut(): zod.$ZodCheck<never> {
  return checkOfObject(({ value }) => {
    const fields = value as Record<string, unknown>;
    for (const key of Object.keys(fields)) if (fields[key] === undefined) delete fields[key];
  });
}

function checkOf<T>(rule: Rule<T>): zod.$ZodCheck<never> {
  return checkOfObject((payload) => rule(payload.value as T, reportTo(payload)));
}

/** It runs also if fields failed. */
/* @__NO_SIDE_EFFECTS__ */ function checkOfObject(check: (payload: zod.ParsePayload) => void): zod.$ZodCheck<never> {
  return checkBy(check, ({ value }) => typeof value === 'object' && value !== null && !Array.isArray(value));
}

/** A shape and more keys. Not a spread, which bundlers take for a side effect, so that unused schemas stay. */
/* @__NO_SIDE_EFFECTS__ */ export function withKeys<A extends Shape, B extends Shape>(
  shape: A,
  more: B,
): Omit<A, keyof B> & B {
  return { ...shape, ...more };
}

/** An object with these keys. Other keys are neither checked nor in the result. */
/* @__NO_SIDE_EFFECTS__ */ export function openObject<S extends Shape>(shape: S): Schema<Output<S>> {
  return typed(new zod.$ZodObject({ type: 'object', shape, checks: [leaveOut()] }));
}

/** An object whose keys may all be left out: leaving out the object is the same as `{}`. */
/* @__NO_SIDE_EFFECTS__ */ export function orEmpty<T extends object>(schema: Schema<T>): Schema<T> {
  return otherwise(schema, {});
}

/** A value that may be left out, which is the same as writing `given`. */
/* @__NO_SIDE_EFFECTS__ */ export function otherwise<T>(innerType: Schema<T>, given: unknown): Schema<T> {
  return typed(new zod.$ZodPrefault({ type: 'prefault', innerType, defaultValue: given }));
}

/* @__NO_SIDE_EFFECTS__ */ export function list<T>(entry: Schema<T>, expected?: string): Schema<T[]> {
  const words = expected !== undefined && { error: () => expected };
  return typed(new zod.$ZodArray({ type: 'array', element: entry, ...words }));
}

/* @__NO_SIDE_EFFECTS__ */ export function record<T>(entry: Schema<T>): Schema<Record<string, T>> {
  return element<Record<string, T>>(
    (given, report) => {
      if (Object.prototype.toString.call(given) !== '[object Object]') return report('an object');
      const entries = Object.entries(given as object).map(([key, item]) => {
        const below: Report = (expected, path = [], got) => report(expected, [key, ...path], got);
        return [key, readBy(entry, item, below) as T] as const;
      });
      return Object.fromEntries(entries);
    },
    (of) => ({ type: 'object', additionalProperties: of(entry) }),
  );
}

/* @__NO_SIDE_EFFECTS__ */ export function orNull<T>(schema: Schema<T>): Schema<T | null> {
  return element<T | null>((given, report) => {
    if (given === null) return null;
    return readBy(schema, given, (expected, ...where) => report(`${expected}, or null`, ...where));
  });
}

export type Verdict<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly ConfigIssue[] };

/** The parsed value. @throws FlowConfigError that lists every problem; `subject` opens its message. */
export function parse<T>(schema: Schema<T>, value: unknown, subject: string): T {
  const verdict = validate(schema, value);
  if (!verdict.ok) throw new FlowConfigError(subject, verdict.issues);
  return verdict.value;
}

/** The parsed value, or every problem. Paths begin with `at`. `words` are for issues that bring none. */
export function validate<T>(schema: Schema<T>, value: unknown, at = '', words: Words = shapeWords): Verdict<T> {
  const issues: ConfigIssue[] = [];
  const report: Report = (expected, path = [], got = describeValue(valueAt(value, path))) =>
    void issues.push({ path: joinPath(at, path), expected, got });
  const parsed = readBy(schema, value, report, words);
  return issues.length === 0 ? { ok: true, value: parsed as T } : { ok: false, issues };
}

/** The parsed value. With problems, which are reported, it is undefined. */
export function readBy<T>(schema: Schema<T>, value: unknown, report: Report, words: Words = shapeWords): T | undefined {
  // Only here does zod hand out the schema of an issue, so the keys that it knows are noted.
  const askedOf = new Map<unknown, unknown>();
  const result = zod.safeParse(schema, value, {
    error: (issue) => {
      if (issue.code === 'unrecognized_keys') askedOf.set(issue.keys, issue.inst);
      return words(issue);
    },
  });
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    const got = issue.code === 'custom' ? (issue.params?.got as string | undefined) : undefined;
    if (issue.code !== 'unrecognized_keys') report(issue.message, issue.path, got);
    else
      for (const key of issue.keys)
        report(expectedKeys(key, askedOf.get(issue.keys)), [...issue.path, key], 'an unknown key');
  }
  return undefined;
}

/** What an issue expects, where it does not say so itself. */
export type Words = (issue: zod.$ZodRawIssue) => string;

/** What objects and lists expect; elements bring words of their own. */
function shapeWords(issue: zod.$ZodRawIssue): string {
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

type Inside = { readonly _zod: { readonly def: { readonly shape?: object; readonly innerType?: unknown } } };

/** The keys of an object schema, and below them those of the objects inside, as `limits.maxRequests`. */
function keysBelow(schema: unknown): string[] {
  const { shape = {}, innerType } = (schema as Inside)._zod.def;
  if (innerType !== undefined) return keysBelow(innerType);
  return Object.entries(shape).flatMap(([key, inner]) => [key, ...keysBelow(inner).map((path) => `${key}.${path}`)]);
}
