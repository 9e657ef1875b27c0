import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GenerationBodyReader } from '../../../src/gateway/bodies/generation-body.js';
import { type Fields, withFields } from '../../../src/gateway/bodies/with-fields.js';

function changed(text: string, fields: Fields): string {
  const bytes = Buffer.from(text);
  const reader = new GenerationBodyReader();
  reader.push(bytes);
  return withFields(bytes, reader.end(bytes).spans, fields).toString();
}

describe('fields of a body', () => {
  it.each([
    ['{"model":"a", "priority": 7 }', { priority: '-3' }, '{"model":"a", "priority": -3 }'],
    ['{"model":"a"}', { priority: '5' }, '{"priority":5,"model":"a"}'],
    ['{ "priority":7 , "model":"a"}', { priority: undefined }, '{  "model":"a"}'],
    ['{"model":"a" , "priority":7}', { priority: undefined }, '{"model":"a" }'],
    ['{"priority":7}', { priority: undefined }, '{}'],
    ['{ "priority":7 }', { priority: undefined, model: '"b"' }, '{"model":"b"  }'],
    ['{}', { priority: '1', model: '"b"' }, '{"priority":1,"model":"b"}'],
    ['{"model":"a"}', { priority: undefined }, '{"model":"a"}'],
  ] satisfies [string, Fields, string][])('of %s become %j, and every other byte stays', (before, fields, after) => {
    expect(changed(before, fields)).toBe(after);
  });

  it('are those that were asked for, whatever else is there and however it is spaced', () => {
    const space = fc.constantFrom('', ' ', '\n\t');
    const member = fc.constantFrom(
      '"model":"a"',
      '"priority":7',
      '"nvext":{"a":{}}',
      '"messages":[{"x":"}"}]',
      '"other":[1,2]',
    );
    const value = fc.option(fc.constantFrom('1', '"x"', '{"a":[]}'), { nil: undefined });
    const fields = fc
      .record({ model: value, priority: value, nvext: value }, { requiredKeys: [] })
      .filter((asked) => Object.values(asked).filter((json) => json === undefined).length <= 1);
    void fc.assert(
      fc.property(
        fc.uniqueArray(member),
        fc.array(space, { minLength: 12, maxLength: 12 }),
        fields,
        (members, gaps, asked) => {
          const gap = (i: number): string => gaps[i % gaps.length]!;
          const text = `{${gap(0)}${members.map((each, i) => `${each}${gap(i)}`).join(`,${gap(3)}`)}}`;
          const expected = JSON.parse(text);
          for (const [name, json] of Object.entries(asked)) {
            if (json === undefined) delete expected[name];
            else expected[name] = JSON.parse(json);
          }
          expect(JSON.parse(changed(text, asked))).toEqual(expected);
        },
      ),
      { numRuns: 3_000 },
    );
  });
});
