import { describe, expect, it } from 'vitest';
import { describeValue } from '../../../src/base/faults/flow-config-error.js';

describe('a value in a message', () => {
  it.each<[unknown, string]>([
    ['plain words', '"plain words" (string)'],
    ['10.0.0.9:6379', '"10.0.0.9:6379" (string)'],
    ['a'.repeat(90), `"${'a'.repeat(77)}..." (string)`],
    ['redis://me:secret@10.0.0.9', '"***" (string)'],
    ['at redis://me:secret@10.0.0.9 it is', '"at ***" (string)'],
    ['https://a.example/path?key=secret', '"***" (string)'],
    [`${'word '.repeat(14)}https://me:secret@a.example`, `"${'word '.repeat(14)}***" (string)`],
    [`redis://me:${'s'.repeat(10_000)}@10.0.0.9`, '"***" (string)'],
    [`${'word '.repeat(15)}https://me:${'s'.repeat(10_000)}@a.example`, `"${'word '.repeat(15)}***" (string)`],
    [`${'word '.repeat(20)}https://me:secret@a.example`, `"${'word '.repeat(15)}wo..." (string)`],
    [7, '7 (number)'],
    [undefined, 'nothing'],
    [['a'], 'an array of 1'],
    [{ a: 1 }, 'an object with keys a'],
  ])('%j is shown short, and without what URLs keep secret', (value, shown) => {
    expect(describeValue(value)).toBe(shown);
  });

  // Expressions that go back over what they have read would take minutes for each of these; the limit of time of a test
  // is the check.
  it.each([':', '/', 'a', 'a:', '/a', ': ', ' '])('is described at once, however often %j stands in it', (part) => {
    expect(describeValue(part.repeat(100_000))).toMatch(/^".{77}\.\.\." \(string\)$/);
  });
});
