/** Objects, lists and records: schemas made of other schemas. Every problem inside is reported with its path. */
import { element, type Report, type Schema, type Shape } from './element.js';
import { expectedKeys } from './suggest.js';

type ReadBy<S> = S extends Schema<infer T> ? T : never;
type OptionalKeys<S> = { [K in keyof S]: undefined extends ReadBy<S[K]> ? K : never }[keyof S];
type Flat<T> = { [K in keyof T]: T[K] };

/** The type that an object of this shape is read as. */
export type Output<S extends Shape> = Flat<
  { [K in Exclude<keyof S, OptionalKeys<S>>]: ReadBy<S[K]> } & { [K in OptionalKeys<S>]?: ReadBy<S[K]> }
>;

/**
 * A condition over several fields of an object. It runs also when fields failed, so that all problems are told at once;
 * a field that failed is then NaN (numbers) or the raw value (anything else).
 */
export type Rule<T> = (value: T, report: Report) => void;

/** An object with these keys and no others, that keeps the rules. */
// @__NO_SIDE_EFFECTS__
export function object<S extends Shape>(shape: S, ...rules: readonly Rule<Output<S>>[]): Schema<Output<S>> {
  return {
    shape,
    read(given, report) {
      if (!isObject(given)) return wrongObject(given, report) as Output<S>;
      const result = readKeys(shape, given, report);
      for (const key of Object.keys(given))
        if (!Object.hasOwn(shape, key)) report(expectedKeys(key, shape), [key], 'an unknown key');
      for (const rule of rules) rule(result, report);
      return result;
    },
  };
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
  return {
    shape,
    read: (given, report) =>
      (isObject(given) ? readKeys(shape, given, report) : wrongObject(given, report)) as Output<S>,
  };
}

/** An object whose keys may all be left out: leaving out the object is the same as `{}`. */
// @__NO_SIDE_EFFECTS__
export function orEmpty<T extends object>(schema: Schema<T>): Schema<T> {
  return { shape: schema.shape, read: (given, report) => schema.read(given === undefined ? {} : given, report) };
}

/** An array whose entries are all read by `entry`. */
// @__NO_SIDE_EFFECTS__
export function list<T>(entry: Schema<T>, expected = 'an array'): Schema<T[]> {
  return element((given, report) => {
    if (Array.isArray(given)) return given.map((item: unknown, index) => entry.read(item, below(report, index)));
    report(expected);
    return undefined;
  });
}

/** An object with any keys, whose values are all read by `entry`. */
// @__NO_SIDE_EFFECTS__
export function record<T>(entry: Schema<T>): Schema<Record<string, T>> {
  return element((given, report) => {
    if (!isObject(given) || Object.prototype.toString.call(given) !== '[object Object]')
      return wrongObject(given, report) as undefined;
    return Object.fromEntries(Object.entries(given).map(([key, item]) => [key, entry.read(item, below(report, key))]));
  });
}

/** A report of what is found below `key`. */
function below(report: Report, key: PropertyKey): Report {
  return (expected, path = [], got) => report(expected, [key, ...path], got);
}

function readKeys<S extends Shape>(shape: S, given: object, report: Report): Output<S> {
  const result: Record<string, unknown> = {};
  for (const [key, schema] of Object.entries(shape)) {
    const read = schema.read(Reflect.get(given, key), below(report, key));
    if (read !== undefined) result[key] = read;
  }
  return result as Output<S>;
}

function wrongObject(given: unknown, report: Report): unknown {
  report('an object');
  return given;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
