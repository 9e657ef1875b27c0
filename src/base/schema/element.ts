/**
 * Options are read by zod schemas. This façade gives them our words: each element says what it expects, completing
 * "expected …; got …", and its JSON Schema. Objects, lists and records are made of elements; `parse` tells of every
 * problem with its path. All are checks of zod's core, because its own kinds would be bytes in each bundle.
 * The functions that make schemas say that they have no side effects, so that bundlers drop those of unused policies.
 */
import * as zod from 'zod/v4/core';
import { type ConfigIssue, describeValue, FlowConfigError } from '../faults/flow-config-error.js';
import { expectedKeys, keysIn, mayBeAbsent } from './known-keys.js';
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
  const check = (payload: zod.ParsePayload): void => {
    const { value: given } = payload;
    payload.value = read(given, reportTo(payload)) ?? given;
  };
  return schemaBy(check, { json });
}

/** The schema with its type: zod's constructors are not generic. */
/* @__NO_SIDE_EFFECTS__ */ export function typed<T>(schema: Schema<unknown>): Schema<T> {
  return schema as Schema<T>;
}

/** What others read of a schema: keys of an object, entries of a list, the schema of a value that may be left out. */
interface Notes {
  readonly json?: Json | undefined;
  readonly shape?: Shape;
  readonly element?: Schema<unknown>;
  readonly innerType?: Schema<unknown>;
  readonly defaultValue?: unknown;
}

/** A schema of one check, which may replace the value. */
/* @__NO_SIDE_EFFECTS__ */ function schemaBy<T>(check: (payload: zod.ParsePayload) => void, notes: Notes): Schema<T> {
  const made = new zod.$ZodCheck({ check: 'custom' });
  made._zod.check = check;
  return typed(new zod.$ZodUnknown({ type: 'unknown', checks: [made], ...notes }));
}

/** The value of a part, with its problems at their place among those of the whole. */
function readPart(schema: Schema<unknown>, value: unknown, issues: zod.$ZodRawIssue[], ...at: PropertyKey[]): unknown {
  const read = run(schema, value);
  issues.push(...read.issues.map((issue) => ({ ...issue, path: [...at, ...(issue.path ?? [])] })));
  return read.value;
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
  return absent(innerType, otherwise, false);
}

/** What stands for a value that is left out: as it is, or as the schema reads it. */
/* @__NO_SIDE_EFFECTS__ */ function absent<T>(
  innerType: Schema<unknown>,
  defaultValue: unknown,
  isRead: boolean,
): Schema<T> {
  const check = (payload: zod.ParsePayload): void => {
    const { value: given = defaultValue, issues } = payload;
    const isKnown = payload.value === undefined && !isRead;
    payload.value = isKnown ? given : readPart(innerType, given, issues);
  };
  const json: Json = (of) => ({ ...of(innerType), ...(defaultValue !== undefined && { default: defaultValue }) });
  return schemaBy(check, { json, innerType, defaultValue });
}

/** Options with a value each; those that have no default may be undefined. */
export type Filled<O, Absent extends keyof O = never> = {
  readonly [K in Exclude<keyof O, Absent>]-?: NonNullable<O[K]>;
} & Pick<O, Absent>;

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
  return fields(shape, (given, read, report) => {
    for (const key of Object.keys(given))
      if (!Object.hasOwn(shape, key)) report(expectedKeys(key, keysIn(shape)), [key], 'an unknown key');
    for (const rule of rules) rule(read, report);
  });
}

type Fields = Readonly<Record<string, unknown>>;

/* @__NO_SIDE_EFFECTS__ */ function fields<S extends Shape>(
  shape: S,
  look?: (given: Fields, read: Output<S>, report: Report) => void,
): Schema<Output<S>> {
  const check = (payload: zod.ParsePayload): void => {
    const { value: given, issues } = payload;
    if (!isRecord(given)) return void issues.push({ code: 'invalid_type', expected: 'object', input: given });
    const parts = Object.entries(shape).map(
      ([key, schema]) => [key, readPart(schema, given[key], issues, key)] as const,
    );
    const read = Object.fromEntries(parts.filter(([, value]) => value !== undefined)) as Output<S>;
    payload.value = read;
    look?.(given, read, reportTo(payload));
  };
  const json: Json = (of) => {
    const properties = Object.fromEntries(Object.entries(shape).map(([key, schema]) => [key, of(schema)]));
    const required = Object.keys(shape).filter((key) => !mayBeAbsent(shape[key]));
    return {
      type: 'object',
      properties,
      ...(required.length > 0 && { required }),
      ...(look && { additionalProperties: false }),
    };
  };
  return schemaBy(check, { json, shape });
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A shape and more keys. Not a spread, which bundlers take for a side effect, so that unused schemas stay. */
/* @__NO_SIDE_EFFECTS__ */ export function withKeys<A extends Shape, B extends Shape>(
  shape: A,
  more: B,
): Omit<A, keyof B> & B {
  return { ...shape, ...more };
}

/** Keys that may be left out, and are read alike. */
/* @__NO_SIDE_EFFECTS__ */ export function optionals<T, K extends string>(
  schema: Schema<T>,
  ...keys: readonly K[]
): Readonly<Record<K, Schema<T | undefined>>> {
  return Object.fromEntries(keys.map((key) => [key, optional(schema)])) as Record<K, Schema<T | undefined>>;
}

/** An object with these keys. Other keys are neither checked nor in the result. */
/* @__NO_SIDE_EFFECTS__ */ export function openObject<S extends Shape>(shape: S): Schema<Output<S>> {
  return fields(shape);
}

/** An object whose keys may all be left out: leaving out the object is the same as `{}`. */
/* @__NO_SIDE_EFFECTS__ */ export function orEmpty<T extends object>(schema: Schema<T>): Schema<T> {
  return otherwise(schema, {});
}

/** A value that may be left out, which is the same as writing `given`. */
/* @__NO_SIDE_EFFECTS__ */ export function otherwise<T>(innerType: Schema<T>, given: unknown): Schema<T> {
  return absent(innerType, given, true);
}

/* @__NO_SIDE_EFFECTS__ */ export function list<T>(entry: Schema<T>, expected = 'an array'): Schema<T[]> {
  const check = (payload: zod.ParsePayload): void => {
    const { value: given, issues } = payload;
    if (!Array.isArray(given)) return void reportTo(payload)(expected);
    payload.value = Array.from(given, (item, i) => readPart(entry, item, issues, i));
  };
  return schemaBy(check, { json: (of) => ({ type: 'array', items: of(entry) }), element: entry });
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

/** The parsed value, or every problem. Paths begin with `at`. */
export function validate<T>(schema: Schema<T>, value: unknown, at = ''): Verdict<T> {
  const issues: ConfigIssue[] = [];
  const report: Report = (expected, path = [], got = describeValue(valueAt(value, path))) =>
    void issues.push({ path: joinPath(at, path), expected, got });
  const parsed = readBy(schema, value, report);
  return issues.length === 0 ? { ok: true, value: parsed as T } : { ok: false, issues };
}

/** The parsed value. With problems, which are reported, it is undefined. */
export function readBy<T>(schema: Schema<T>, value: unknown, report: Report): T | undefined {
  const read = run(schema, value);
  for (const issue of read.issues)
    report(issue.message ?? 'an object', issue.path, issue.code === 'custom' ? issue.params?.got : undefined);
  return read.issues.length === 0 ? (read.value as T) : undefined;
}

function run(schema: Schema<unknown>, value: unknown): zod.ParsePayload {
  const read = schema._zod.run({ value, issues: [] }, { async: false });
  if (read instanceof Promise) throw new zod.$ZodAsyncError();
  return read;
}
