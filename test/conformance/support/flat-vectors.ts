/**
 * Vectors without `input` and `expect`: conditions and expectations stand side by side, in the vector itself and in its
 * cases.
 */
import { type Runner, runner } from './runner.js';
import type { Vector } from './vectors.js';

/** What every vector may say about itself, and the part that is looked at by its own keys. */
const frame = ['id', 'component', 'name', 'note', 'source', 'tolerance', 'expect'];

/**
 * A runner for vectors with these keys; any other key makes it throw. `expected`: keys of an `expect`, for those that
 * have one.
 */
export function flatRunner<I extends object, E extends object = object>(
  keys: readonly (keyof I & string)[],
  run: (vector: Vector<I, E>) => void | Promise<void>,
  expected: readonly (keyof E & string)[] = [],
): Runner {
  const known = [...frame, ...keys] as (keyof I & string)[];
  return runner<I, E>({ input: known, expect: expected }, run);
}

/** The same object, if it has no key beside these. Cases hold expectations too, and none may go unread. */
export function withKeys<T extends object>(entry: T, ...known: readonly (keyof T & string)[]): T {
  const unknown = Object.keys(entry).filter((key) => !known.some((each) => each === key));
  if (unknown.length > 0) throw new Error(`the runner does not know the keys ${unknown.join(', ')}`);
  return entry;
}
