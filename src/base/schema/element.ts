/**
 * Options are read by zod schemas. This façade gives them our words: every element says what it expects, in words that
 * complete the sentence "expected …; got …", and what JSON Schema says of it. It makes them of zod's core, which zod
 * and zod/mini share, because the methods that these two add would be bytes in every bundle.
 *
 * The functions that make elements have no side effects and say so, so that a bundler drops the schemas of policies
 * that are not imported.
 */
import { $ZodCheck, $ZodDefault, $ZodOptional, type $ZodType, $ZodUnknown, type ParsePayload } from 'zod/v4/core';

/** A zod schema that reads a `T`. */
export type Schema<T> = $ZodType<T>;

export type Shape = Readonly<Record<string, Schema<unknown>>>;

/**
 * Reports a problem: what was expected; the path below the value; and what came, if the value itself does not show it.
 * `path` is relative to the value in hand.
 */
export type Report = (expected: string, path?: readonly PropertyKey[], got?: string) => void;

/** What JSON Schema says of a value, for editors: keywords, or a function of what it says of other schemas. */
export type Json = Keywords | ((of: (schema: Schema<unknown>) => Keywords) => Keywords);
export type Keywords = Readonly<Record<string, unknown>>;

/**
 * A schema made of one function: it returns what the value stands for, or reports what is wrong and returns undefined.
 * Rules over several fields then see the raw value.
 */
// @__NO_SIDE_EFFECTS__
export function element<T>(read: (value: unknown, report: Report) => T | undefined, json?: Json): Schema<T> {
  const check = checkBy((payload) => {
    const { value: given } = payload;
    payload.value = read(given, reportTo(payload)) ?? given;
  });
  const def = { type: 'unknown' as const, checks: [check], json };
  return typed(new $ZodUnknown(def));
}

/** The schema with its type: zod's constructors are not generic. */
// @__NO_SIDE_EFFECTS__
export function typed<T>(schema: Schema<unknown>): Schema<T> {
  return schema as Schema<T>;
}

/** A check of zod's, which may replace the value. With `when` it runs on these, also if other problems are known. */
// @__NO_SIDE_EFFECTS__
export function checkBy(
  check: (payload: ParsePayload) => void,
  when?: (payload: ParsePayload) => boolean,
): $ZodCheck<never> {
  const made = new $ZodCheck({ check: 'custom', when });
  made._zod.check = check;
  return made;
}

/** A report that becomes an issue of zod's. */
export function reportTo({ value, issues }: ParsePayload): Report {
  return (message, path = [], got) => {
    issues.push({ code: 'custom', message, path: [...path], input: value, params: { got } });
  };
}

/** A schema of any value that passes `isRight`. */
// @__NO_SIDE_EFFECTS__
export function value<T>(expected: string, isRight: (value: unknown) => value is T, json?: Json): Schema<T> {
  return element((given, report) => {
    if (isRight(given)) return given;
    report(expected);
    return undefined;
  }, json);
}

/** Any value, unchecked. */
// @__NO_SIDE_EFFECTS__
export function anything(json?: Json): Schema<unknown> {
  return optional(element((given) => given, json));
}

/** A function; its parameters and its result cannot be checked. */
// @__NO_SIDE_EFFECTS__
export function callable<F>(expected = 'a function'): Schema<F> {
  return value(expected, (given): given is F => typeof given === 'function');
}

/** An object that has these methods: it may come from the package's other copy (ESM, CommonJS) or be the host's own. */
// @__NO_SIDE_EFFECTS__
export function objectWith<T extends object>(expected: string, ...methods: readonly (keyof T & string)[]): Schema<T> {
  return value(expected, (given): given is T => {
    return (
      typeof given === 'object' &&
      given !== null &&
      methods.every((name) => typeof Reflect.get(given, name) === 'function')
    );
  });
}

/** A value that may be left out, and then is `otherwise`. */
export function optional<T>(schema: Schema<T>): Schema<T | undefined>;
export function optional<T>(schema: Schema<T>, otherwise: T): Schema<T>;
// @__NO_SIDE_EFFECTS__
export function optional<T>(innerType: Schema<T>, otherwise?: T): Schema<T | undefined> {
  if (otherwise === undefined) return typed(new $ZodOptional({ type: 'optional', innerType }));
  return typed(new $ZodDefault({ type: 'default', innerType, defaultValue: otherwise }));
}
