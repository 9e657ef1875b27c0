/**
 * What option schemas are made of. Every element says in its own words what it expects; the words complete the sentence
 * "expected …; got …", and an element that fails says so once, however many forms it takes.
 */
import * as z from 'zod/mini';

/** A schema whose input may be anything. */
export type Schema<T> = z.ZodMiniType<T, unknown>;

/**
 * Reports a problem: what would have been right; below the value, where; and what came, when the value itself does not say it.
 * `path` is relative to the value in hand.
 */
export type Report = (expected: string, path?: readonly PropertyKey[], got?: string) => void;

interface Payload<T> {
  value: T;
  issues: z.core.$ZodRawIssue[];
}

function reporterOf({ value, issues }: Payload<unknown>): Report {
  return (expected, path = [], got) => {
    issues.push({ code: 'custom', message: expected, path: [...path], input: value, params: got === undefined ? {} : { got } });
  };
}

/** A schema made of one function: it returns what the value stands for, or reports what is wrong and returns undefined. */
export function element<T>(read: (value: unknown, report: Report) => T | undefined): Schema<T> {
  return z.transform<unknown, T>((candidate, payload) => {
    // A report makes the parse fail, so that nobody but a rule ever sees the raw value.
    return (read(candidate, reporterOf({ value: candidate, issues: payload.issues })) ?? candidate) as T;
  }) as Schema<T>;
}

/** A schema for whatever passes `isRight`. */
export function value<T>(expected: string, isRight: (value: unknown) => value is T): Schema<T> {
  return element((candidate, report) => {
    if (isRight(candidate)) return candidate;
    report(expected);
    return undefined;
  });
}

type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** An object with these keys and no others. */
export function object<S extends Shape>(shape: S): Schema<z.output<z.ZodMiniObject<S, z.core.$strict>>> {
  return z.strictObject(shape);
}

/** A key that may be left out. */
export function optional<T>(schema: Schema<T>): z.ZodMiniOptional<Schema<T>> {
  return z.optional(schema);
}

/**
 * A condition over several fields of an object, for `schema.check(rule(…))`. It runs also when fields failed, so that all problems are
 * told at once; a field that failed is then NaN (numbers) or the raw value (anything else).
 */
export function rule<T>(test: (value: T, report: Report) => void): z.core.$ZodCheck<T> {
  return z.check<T>((payload) => test(payload.value, reporterOf(payload)), {
    when: (payload) => typeof payload.value === 'object' && payload.value !== null,
  });
}
