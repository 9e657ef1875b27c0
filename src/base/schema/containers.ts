/** Objects, lists and records: schemas made of other schemas. Every problem inside is reported with its path. */
import { $ZodArray, $ZodNever, $ZodObject, $ZodPrefault, type output, type ParsePayload } from 'zod/v4/core';
import { checkBy, element, type Report, reportTo, type Schema, type Shape, typed } from './element.js';
import { readBy } from './parse.js';

type OptionalKeys<S extends Shape> = { [K in keyof S]: undefined extends output<S[K]> ? K : never }[keyof S];
type Flat<T> = { [K in keyof T]: T[K] };

/** The type that an object of this shape is read as. */
export type Output<S extends Shape> = Flat<
  { [K in Exclude<keyof S, OptionalKeys<S>>]: output<S[K]> } & { [K in OptionalKeys<S>]?: output<S[K]> }
>;

/** A condition over fields of an object. It runs if fields failed, too: those are NaN (numbers) or the raw value. */
export type Rule<T> = (value: T, report: Report) => void;

/** An object with these keys and no others, that keeps the rules. */
// @__NO_SIDE_EFFECTS__
export function object<S extends Shape>(shape: S, ...rules: readonly Rule<Output<S>>[]): Schema<Output<S>> {
  const catchall = new $ZodNever({ type: 'never' });
  return typed(new $ZodObject({ type: 'object', shape, catchall, checks: [leaveOut(), ...rules.map(checkOf)] }));
}

/** Zod keeps the keys of what was given as undefined, which is the same as left out. */
// @__NO_SIDE_EFFECTS__
function leaveOut(): ReturnType<typeof checkBy> {
  return checkBy(({ value }) => {
    if (isObject(value)) for (const key of Object.keys(value)) if (value[key] === undefined) delete value[key];
  }, isObjectGiven);
}

function checkOf<T>(rule: Rule<T>): ReturnType<typeof checkBy> {
  return checkBy((payload) => rule(payload.value as T, reportTo(payload)), isObjectGiven);
}

function isObjectGiven({ value }: ParsePayload): boolean {
  return isObject(value);
}

/**
 * A shape and more keys. Use it instead of a spread: bundlers take a spread for a side effect and keep unused schemas,
 * but drop an unused call of this.
 */
// @__NO_SIDE_EFFECTS__
export function withKeys<A extends Shape, B extends Shape>(shape: A, more: B): Omit<A, keyof B> & B {
  return { ...shape, ...more };
}

/** An object with these keys. Other keys are neither checked nor in the result. */
// @__NO_SIDE_EFFECTS__
export function openObject<S extends Shape>(shape: S): Schema<Output<S>> {
  return typed(new $ZodObject({ type: 'object', shape, checks: [leaveOut()] }));
}

/** An object whose keys may all be left out: leaving out the object is the same as `{}`. */
// @__NO_SIDE_EFFECTS__
export function orEmpty<T extends object>(schema: Schema<T>): Schema<T> {
  return otherwise(schema, {});
}

/** A value that may be left out, which is the same as writing `given`. */
// @__NO_SIDE_EFFECTS__
export function otherwise<T>(innerType: Schema<T>, given: unknown): Schema<T> {
  return typed(new $ZodPrefault({ type: 'prefault', innerType, defaultValue: given }));
}

// @__NO_SIDE_EFFECTS__
export function list<T>(entry: Schema<T>, expected?: string): Schema<T[]> {
  const words = expected !== undefined && { error: () => expected };
  return typed(new $ZodArray({ type: 'array', element: entry, ...words }));
}

// @__NO_SIDE_EFFECTS__
export function record<T>(entry: Schema<T>): Schema<Record<string, T>> {
  return element<Record<string, T>>(
    (given, report) => {
      if (Object.prototype.toString.call(given) !== '[object Object]') {
        report('an object');
        return undefined;
      }
      const entries = Object.entries(given as object).map(([key, item]) => {
        const below: Report = (expected, path = [], got) => report(expected, [key, ...path], got);
        return [key, readBy(entry, item, below) as T] as const;
      });
      return Object.fromEntries(entries);
    },
    (of) => ({ type: 'object', additionalProperties: of(entry) }),
  );
}

// @__NO_SIDE_EFFECTS__
export function orNull<T>(schema: Schema<T>): Schema<T | null> {
  return element<T | null>((given, report) => {
    if (given === null) return null;
    return readBy(schema, given, (expected, ...where) => report(`${expected}, or null`, ...where));
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
