/**
 * Schemas of options: each reads a value, or reports the problems of it. Every element says in its own words
 * what it expects; the words complete the sentence "expected …; got …".
 *
 * The functions that make elements have no side effects and say so, so that a bundler drops the schemas of policies
 * that are not imported.
 */

/**
 * Reports a problem: what was expected; the path below the value; and what came, if the value itself does not show it.
 * `path` is relative to the value in hand.
 */
export type Report = (expected: string, path?: readonly PropertyKey[], got?: string) => void;

/**
 * Reads a value of any type. When `read` reports a problem, the reading fails as a whole. Only rules over several
 * fields then see the returned value: NaN in place of a number, the raw value in place of anything else.
 */
export interface Schema<out T> {
  read(value: unknown, report: Report): T;
  /** The keys that an object may have, and what each stands for. */
  readonly shape?: Shape | undefined;
}

export type Shape = Readonly<Record<string, Schema<unknown>>>;

/**
 * A schema made of one function: it returns what the value stands for, or reports what is wrong and returns undefined.
 */
// @__NO_SIDE_EFFECTS__
export function element<T>(read: (value: unknown, report: Report) => T | undefined): Schema<T> {
  return { read: (given, report) => (read(given, report) ?? given) as T };
}

/** A schema of any value that passes `isRight`. */
// @__NO_SIDE_EFFECTS__
export function value<T>(expected: string, isRight: (value: unknown) => value is T): Schema<T> {
  return element((given, report) => {
    if (isRight(given)) return given;
    report(expected);
    return undefined;
  });
}

/** Any value, unchecked. */
// @__NO_SIDE_EFFECTS__
export function anything(): Schema<unknown> {
  return { read: (given) => given };
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
export function optional<T>(schema: Schema<T>, otherwise?: T): Schema<T | undefined> {
  return {
    shape: schema.shape,
    read: (given, report) => (given === undefined ? otherwise : schema.read(given, report)),
  };
}

/** A value, or null. */
// @__NO_SIDE_EFFECTS__
export function orNull<T>(schema: Schema<T>): Schema<T | null> {
  return {
    read: (given, report) =>
      given === null ? null : schema.read(given, (expected, ...where) => report(`${expected}, or null`, ...where)),
  };
}
