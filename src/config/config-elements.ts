/** The elements of files that differ from the constructor's: quantities with a meaning for 0, durations as text. */
import { parseDuration } from '../base/schema/duration.js';
import { parseQuantity } from '../base/schema/quantity.js';
import * as s from '../base/schema/schema.js';
import type { Schema } from '../index.js';

/** A quantity; `zero` says what 0 stands for, and `.inf` is unlimited. */
export function quantity(zero: string, example: string): Schema<number> {
  return s.element(
    (candidate, report) => {
      // A finite number is read like its text, so that 1.5 is rounded up with or without quotes.
      const written = typeof candidate === 'number' && Number.isFinite(candidate) ? String(candidate) : candidate;
      const amount = typeof written === 'string' || typeof written === 'number' ? parseQuantity(written) : NaN;
      if (amount === Infinity || (amount >= 0 && amount <= Number.MAX_SAFE_INTEGER)) return amount;
      if (amount > 0) report(`a quantity of at most ${Number.MAX_SAFE_INTEGER} (2^53 - 1)`);
      else report(`a quantity from 0 (${zero}) up, such as "${example}"`);
      return NaN;
    },
    { type: ['number', 'string'], minimum: 0 },
  );
}

export const ttl = (): Schema<number> => duration('a duration from "0s" (for ever) up, such as "60s"', (ms) => ms >= 0);

export const span = (example: string): Schema<number> =>
  duration(`a duration from "0s" up, such as "${example}"`, (ms) => ms >= 0);

export const interval = (example: string): Schema<number> =>
  duration(`a duration above 0, such as "${example}"`, (ms) => ms > 0);

function duration(expected: string, isRight: (ms: number) => boolean): Schema<number> {
  return s.readAs(expected, { type: 'string' }, (given) => {
    const ms = typeof given === 'string' ? parseDuration(given) : NaN;
    return isRight(ms) ? ms : NaN;
  });
}
