/**
 * Plays a vector and says what came of it. Only a comparison that failed is a difference: whatever else is thrown means
 * that the runner could not play the vector, and then nobody knows what headgate does.
 */
import { runners } from '../runners/index.js';
import type { Vector } from './vectors.js';

export type Result =
  /** headgate does what the vector expects. */
  | { readonly type: 'same' }
  /** It was played, and something else happened. */
  | { readonly type: 'differs'; readonly why: unknown }
  /** A key, a word or a kind that no runner knows, or a runner that broke. */
  | { readonly type: 'not played'; readonly why: unknown };

export async function play(vector: Vector): Promise<Result> {
  const run = runners[vector.kind];
  if (run === undefined) return { type: 'not played', why: new Error(`unknown kind ${vector.kind}`) };
  try {
    await run(vector);
    return { type: 'same' };
  } catch (why) {
    return { type: isComparison(why) ? 'differs' : 'not played', why };
  }
}

/** What `expect` throws. */
function isComparison(error: unknown): boolean {
  return error instanceof Error && error.name === 'AssertionError';
}
