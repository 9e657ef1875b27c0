/** Elements of option schemas. A number that failed is NaN for rules: every comparison with it is false. */
import type { Clock } from '../clock.js';
import { expectedWord } from '../faults/did-you-mean.js';
import { type Duration, parseDuration } from './duration.js';
import { callable, element, type Json, objectWith, type Schema, value } from './element.js';
import { parseQuantity, type Quantity } from './quantity.js';

/** Bounds of a number: `from` and `to` belong to the range, `above` does not. */
export interface Range {
  from?: number;
  above?: number;
  to?: number;
}

function isIn(candidate: number, { from = -Infinity, above = -Infinity, to = Infinity }: Range): boolean {
  return candidate >= from && (candidate > above || above === -Infinity) && candidate <= to;
}

function rangeText({ from, above, to }: Range): string {
  if (from !== undefined) return to === undefined ? ` from ${from} up` : ` from ${from} to ${to}`;
  if (above !== undefined) return to === undefined ? ` above ${above}` : ` above ${above}, at most ${to}`;
  return to === undefined ? '' : ` of at most ${to}`;
}

/** A finite number. */
/* @__NO_SIDE_EFFECTS__ */ export function number(range: Range = {}): Schema<number> {
  return numeric('number', range, `a number${rangeText(range)}`, Number.isFinite);
}

/** A safe integer. */
/* @__NO_SIDE_EFFECTS__ */ export function integer(range: Range = {}): Schema<number> {
  const kind = Object.keys(range).length > 0 ? 'an' : 'a safe';
  return numeric('integer', range, `${kind} integer${rangeText(range)}`, Number.isSafeInteger);
}

/* @__NO_SIDE_EFFECTS__ */ function numeric(
  type: 'number' | 'integer',
  range: Range,
  expected: string,
  isRight: (candidate: unknown) => boolean,
) {
  const { from: minimum, above: exclusiveMinimum, to: maximum } = range;
  return readAs(expected, { type, minimum, exclusiveMinimum, maximum }, (given) =>
    typeof given === 'number' && isRight(given) && isIn(given, range) ? given + 0 : NaN,
  );
}

/** The number that `read` makes of a value; NaN: it is not what is expected. */
/* @__NO_SIDE_EFFECTS__ */ export function readAs(
  expected: string,
  json: Json,
  read: (given: unknown) => number,
): Schema<number> {
  return element((given, report) => {
    const number = read(given);
    if (Number.isNaN(number)) report(expected);
    return number;
  }, json);
}

/* @__NO_SIDE_EFFECTS__ */ export function positiveInteger(): Schema<number> {
  return integer({ from: 1 });
}

/* @__NO_SIDE_EFFECTS__ */ export function atLeastZero(): Schema<number> {
  return number({ from: 0 });
}

/* @__NO_SIDE_EFFECTS__ */ export function aboveZero(): Schema<number> {
  return number({ above: 0 });
}

/** A number that may be Infinity. */
/* @__NO_SIDE_EFFECTS__ */ export function numberFrom(from: number, what = 'a number'): Schema<number> {
  return value(`${what} from ${from} up`, (given): given is number => typeof given === 'number' && given >= from);
}

/** A span of time; Infinity: without end. */
/* @__NO_SIDE_EFFECTS__ */ export function msAboveZero(): Schema<number> {
  return value('ms above 0', (given): given is number => typeof given === 'number' && given > 0);
}

/** A number from 0 to 1. */
/* @__NO_SIDE_EFFECTS__ */ export function ratio(): Schema<number> {
  return number({ from: 0, to: 1 });
}

/* @__NO_SIDE_EFFECTS__ */ export function ratioAboveZero(): Schema<number> {
  return number({ above: 0, to: 1 });
}

/* @__NO_SIDE_EFFECTS__ */ export function flag(): Schema<boolean> {
  return value('true or false', (candidate) => typeof candidate === 'boolean', { type: 'boolean' });
}

/** Text that is not empty. */
/* @__NO_SIDE_EFFECTS__ */ export function text(expected = 'text that is not empty'): Schema<string> {
  const isRight = (candidate: unknown): candidate is string => typeof candidate === 'string' && candidate !== '';
  return value(expected, isRight, { type: 'string', minLength: 1 });
}

/* @__NO_SIDE_EFFECTS__ */ export function oneOf<const T extends string>(...words: readonly T[]): Schema<T> {
  return element(
    (candidate, report) => {
      const word = words.find((each) => each === candidate);
      if (word === undefined) report(expectedWord(candidate, words));
      return word;
    },
    { enum: words },
  );
}

const numberOrText = { type: ['number', 'string'], minimum: 0 };

function isNumberOrText(candidate: unknown): candidate is number | string {
  return typeof candidate === 'number' || typeof candidate === 'string';
}

/** A count or a size, Infinity for unlimited. `example` is what the message shows. */
/* @__NO_SIDE_EFFECTS__ */ export function quantity(example: Quantity = '1k'): Schema<number> {
  return element((candidate, report) => {
    const amount = isNumberOrText(candidate) ? parseQuantity(candidate) : NaN;
    if (amount === Infinity || (amount >= 0 && amount <= Number.MAX_SAFE_INTEGER)) return amount;
    if (amount > 0) report(`at most ${Number.MAX_SAFE_INTEGER} (2^53 - 1), or Infinity for unlimited`);
    else report(`an integer from 0 up, Infinity, or a quantity like "${example}"`);
    return NaN;
  }, numberOrText);
}

/** A quantity from 1 up to `most`. */
/* @__NO_SIDE_EFFECTS__ */ export function fromOne(expected: string, most: number = Infinity): Schema<number> {
  return readAs(expected, { type: ['integer', 'string'], minimum: 1 }, (given) => {
    const amount = isNumberOrText(given) ? parseQuantity(given) : NaN;
    const isRight = amount === Infinity || amount <= Number.MAX_SAFE_INTEGER;
    return isRight && amount >= 1 && amount <= most ? amount : NaN;
  });
}

/** A span of time in ms; Infinity for ever. */
/* @__NO_SIDE_EFFECTS__ */ export function duration(example: Duration = '60s'): Schema<number> {
  return span(`ms from 0 up, Infinity, or a duration like "${example}"`, (ms) => ms >= 0);
}

/** A span of time in ms, above 0 and finite. */
/* @__NO_SIDE_EFFECTS__ */ export function positiveDuration(example: Duration = '5m'): Schema<number> {
  return span(`ms above 0, or a duration like "${example}"`, (ms) => ms > 0 && ms < Infinity);
}

/** A span of time in ms, above 0; Infinity for ever. */
/* @__NO_SIDE_EFFECTS__ */ export function durationAboveZero(example: Duration = '5s'): Schema<number> {
  return span(`ms above 0, Infinity, or a duration like "${example}"`, (ms) => ms > 0);
}

/* @__NO_SIDE_EFFECTS__ */ function span(expected: string, isRight: (ms: number) => boolean): Schema<number> {
  return readAs(expected, numberOrText, (given) => {
    const ms = isNumberOrText(given) ? parseDuration(given) : NaN;
    return isRight(ms) ? ms : NaN;
  });
}

/** A `Clock`; its members must be functions. */
/* @__NO_SIDE_EFFECTS__ */ export function clock(): Schema<Clock> {
  return objectWith<Clock>('a clock with now, setTimeout and clearTimeout', 'now', 'setTimeout', 'clearTimeout');
}

/** A source of random numbers, as `Math.random`. */
/* @__NO_SIDE_EFFECTS__ */ export function randomSource(): Schema<() => number> {
  return callable('a function that returns a number from 0 to less than 1');
}
