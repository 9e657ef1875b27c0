/** What a runner is, and the checks that all runners share. */
import { expect } from 'vitest';
import { FlowConfigError } from '../../../src/index.js';
import { notCompared } from './not-compared.js';
import type { Vector } from './vectors.js';

/** Throws when headgate does not do what the vector expects. */
export type Runner = (vector: Vector) => void | Promise<void>;

/** Kind → runner. */
export type Runners = Readonly<Record<string, Runner>>;

/** The keys that a runner understands. */
interface Keys<I, E> {
  readonly input: readonly (keyof I & string)[];
  readonly expect: readonly (keyof E & string)[];
}

/**
 * A runner for vectors with these keys. A key that it does not know makes it throw: a condition or an expectation that
 * nobody looks at must not pass for conformance. What is left out on purpose stands in `not-compared.ts`.
 */
export function runner<I extends object, E extends object>(
  keys: Keys<I, E>,
  run: (vector: Vector<I, E>) => void | Promise<void>,
): Runner {
  return (vector) => {
    const input = compared(vector, 'input', keys.input);
    const expected = compared(vector, 'expect', keys.expect);
    return run({ ...vector, input, expect: expected } as Vector<I, E>);
  };
}

/** What is compared of one part of a vector. */
function compared(vector: Vector, part: 'input' | 'expect', known: readonly string[]): object {
  const entries = Object.entries(vector[part]).filter(([key]) => !isNotCompared(vector, `${part}.${key}`));
  const unknown = entries.flatMap(([key]) => (known.includes(key) ? [] : [key]));
  if (unknown.length > 0) throw new Error(`the runner of ${vector.kind} does not know ${part}: ${unknown.join(', ')}`);
  return Object.fromEntries(entries);
}

/** `path` such as `expect.logsWithinInterval`. */
export function isNotCompared({ kind }: Vector, path: string): boolean {
  return notCompared[kind] !== undefined && path in notCompared[kind];
}

/** The runner cannot play this step, or does not know this word. */
export function unknownWord(vector: Vector, word: unknown): Error {
  return new Error(`the runner of ${vector.kind} does not know ${JSON.stringify(word)}`);
}

/**
 * What is made of a configuration that the vector takes for right. One that headgate refuses is a difference, not a
 * failure of the runner.
 */
export function accepted<T>(make: () => T): T {
  let problem: string | undefined;
  try {
    return make();
  } catch (error) {
    if (!(error instanceof FlowConfigError)) throw error;
    problem = error.message;
  }
  expect(problem, 'the configuration is refused').toBeUndefined();
  throw new Error(problem);
}

/** Equal within the vector's tolerance; exactly equal when it has none. */
export function expectNumber(actual: number, expected: number, tolerance = 0): void {
  if (tolerance === 0) expect(actual).toBe(expected);
  else expect(Math.abs(actual - expected), `${actual} against ${expected}`).toBeLessThanOrEqual(tolerance);
}

export function expectNumbers(actual: readonly number[], expected: readonly number[], tolerance = 0): void {
  expect(actual).toHaveLength(expected.length);
  for (const [index, value] of expected.entries()) expectNumber(actual[index] as number, value, tolerance);
}
