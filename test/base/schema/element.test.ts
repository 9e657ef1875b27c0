import { describe, expect, it } from 'vitest';
import { FlowConfigError } from '../../../src/base/faults/flow-config-error.js';
import {
  element,
  list,
  object,
  optional,
  parse,
  type Schema,
  validate,
  value,
} from '../../../src/base/schema/element.js';
import { below, joinPath } from '../../../src/base/schema/path.js';
import {
  aboveZero,
  atLeastZero,
  duration,
  flag,
  integer,
  number,
  oneOf,
  positiveDuration,
  positiveInteger,
  quantity,
  ratio,
  ratioAboveZero,
  text,
} from '../../../src/base/schema/types.js';

/** The message of the error that parsing throws, without its subject. */
function complaint(schema: Schema<unknown>, input: unknown): string {
  try {
    parse(schema, input, 'x');
  } catch (error) {
    if (error instanceof FlowConfigError) return error.message.slice('x: '.length);
    throw error;
  }
  return 'none';
}

describe('parse', () => {
  const person = object({
    name: text(),
    address: optional(object({ street: text(), number: optional(positiveInteger()) })),
  });

  it('returns the parsed value', () => {
    expect(parse(object({ limit: quantity(), wait: duration() }), { limit: '1k', wait: '1m' }, 'x')).toEqual({
      limit: 1000,
      wait: 60_000,
    });
  });

  it('lists every problem with its path, what was expected and what came', () => {
    const people = list(person);
    const input = [{ name: '', address: { street: 5, number: 0 } }, null, { name: 'b', adress: {} }];
    const error = (() => {
      try {
        return parse(people, input, 'people');
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(FlowConfigError);
    expect(error).toMatchObject({ code: 'ERR_FLOW_CONFIG', name: 'FlowConfigError' });
    expect(String(error)).toBe(
      [
        'FlowConfigError: people: 5 problems',
        '  [0].name: expected text that is not empty; got "" (string)',
        '  [0].address.street: expected text that is not empty; got 5 (number)',
        '  [0].address.number: expected an integer from 1 up; got 0 (number)',
        '  [1]: expected an object; got null',
        '  [2].adress: expected one of the keys name, address (did you mean "address"?); got an unknown key',
      ].join('\n'),
    );
  });

  it('tells one problem in one line', () => {
    expect(() => parse(person, {}, 'person')).toThrow('person: name: expected text that is not empty; got nothing');
  });

  it('points from an unknown key to the same key one level down', () => {
    expect(complaint(person, { name: 'a', street: 'b' })).toBe(
      'street: expected one of the keys name, address (did you mean "address.street"?); got an unknown key',
    );
  });

  it('names unknown keys one by one, without a suggestion when nothing is close', () => {
    expect(complaint(object({ a: optional(flag()) }), { zzz: 1, yyy: 2 })).toBe(
      '2 problems\n  zzz: expected one of the keys a; got an unknown key\n  yyy: expected one of the keys a; got an unknown key',
    );
    expect(complaint(object({}), { zzz: 1 })).toBe('zzz: expected no keys; got an unknown key');
  });

  it('puts a prefix before every path', () => {
    const verdict = validate(person, { name: 1 }, 'file.yaml: ');
    expect(verdict).toEqual({
      ok: false,
      issues: [{ path: 'file.yaml: name', expected: 'text that is not empty', got: '1 (number)' }],
    });
  });
});

describe('elements', () => {
  it.each<[Schema<unknown>, unknown, string]>([
    [number(), 'x', 'a number'],
    [number(), Number.NaN, 'a number'],
    [number({ to: 3 }), 4, 'a number of at most 3'],
    [number({ from: 1, to: 2 }), 3, 'a number from 1 to 2'],
    [integer(), 2 ** 53, 'a safe integer'],
    [integer({ from: 1, to: 9 }), 10, 'an integer from 1 to 9'],
    [positiveInteger(), 0, 'an integer from 1 up'],
    [atLeastZero(), -1, 'a number from 0 up'],
    [aboveZero(), 0, 'a number above 0'],
    [ratio(), 1.1, 'a number from 0 to 1'],
    [ratioAboveZero(), 0, 'a number above 0, at most 1'],
    [flag(), 'true', 'true or false'],
    [text(), '', 'text that is not empty'],
    [oneOf('a', 'b'), 'c', 'one of "a", "b"'],
    [quantity(), '-5', 'an integer from 0 up, Infinity, or a quantity like "1k"'],
    [quantity('10Gi'), '10GB', 'an integer from 0 up, Infinity, or a quantity like "10Gi"'],
    [quantity(), '1E', 'at most 9007199254740991 (2^53 - 1), or Infinity for unlimited'],
    [quantity(), 2 ** 53, 'at most 9007199254740991 (2^53 - 1), or Infinity for unlimited'],
    [duration(), '60', 'ms from 0 up, Infinity, or a duration like "60s"'],
    [duration(), -1, 'ms from 0 up, Infinity, or a duration like "60s"'],
    [positiveDuration(), '0s', 'ms above 0, or a duration like "5m"'],
    [positiveDuration('1s'), Infinity, 'ms above 0, or a duration like "1s"'],
  ])('says what it expects: %#', (schema, input, expected) => {
    expect(validate(schema, input)).toMatchObject({ ok: false, issues: [{ path: '', expected }] });
  });

  it.each<[Schema<unknown>, unknown, unknown]>([
    [number({ from: 0 }), -0, 0],
    [ratioAboveZero(), 1, 1],
    [aboveZero(), 1e-9, 1e-9],
    [oneOf('a', 'b'), 'b', 'b'],
    [quantity(), Infinity, Infinity],
    [duration(), Infinity, Infinity],
    [duration(), 0, 0],
    [positiveDuration(), '1ns', 1e-6],
  ])('lets its bounds in: %#', (schema, input, output) => {
    expect(parse(schema, input, 'x')).toBe(output);
  });

  it('reports as often as it finds something, and where', () => {
    const schema = element<number>((_, report) => {
      report('one thing', ['a']);
      report('another', [], 'what came instead');
      return undefined;
    });
    expect(complaint(schema, { a: 1 })).toBe(
      '2 problems\n  a: expected one thing; got 1 (number)\n  expected another; got what came instead',
    );
  });

  it('lets rules see the other fields when one has failed', () => {
    const range = object(
      { from: number(), to: number(), label: value('a word', (label): label is string => label === 'word') },
      ({ from, to }, report) => {
        if (from > to) report(`at least ${from}`, ['to']);
      },
    );
    expect(complaint(range, { from: 2, to: 1, label: 3 })).toBe(
      '2 problems\n  label: expected a word; got 3 (number)\n  to: expected at least 2; got 1 (number)',
    );
    expect(complaint(range, { from: 'x', to: 1, label: 'word' })).toBe('from: expected a number; got "x" (string)');
    expect(complaint(range, 5)).toBe('expected an object; got 5 (number)');
  });
});

describe('paths', () => {
  it('reads like the code that would reach the value', () => {
    expect(joinPath('', ['bands', 1, 'limits', 'maxRequests'])).toBe('bands[1].limits.maxRequests');
    expect(joinPath('bands', [0, 'a b', Symbol('c')])).toBe('bands[0]["a b"][Symbol(c)]');
    expect(joinPath('Heading: ', ['a'])).toBe('Heading: a');
  });

  it('joins two paths', () => {
    expect(below('a', 'b.c')).toBe('a.b.c');
    expect(below('a', '[0]')).toBe('a[0]');
    expect(below('a', '')).toBe('a');
    expect(below('', 'b')).toBe('b');
    expect(below('Heading: ', 'b')).toBe('Heading: b');
  });
});
