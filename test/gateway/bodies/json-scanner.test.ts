import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonFault, JsonScanner } from '../../../src/gateway/bodies/json-scanner.js';

const wanted = new Set(['model', 'messages', 'n']);

/** The text of each wanted value, with the body cut into pieces of `size` bytes. */
function scan(text: string, size = 7): Record<string, string> {
  const bytes = Buffer.from(text);
  const scanner = new JsonScanner(wanted);
  for (let at = 0; at < bytes.length; at += size) scanner.push(bytes.subarray(at, at + size));
  return Object.fromEntries(
    [...scanner.end()].map(([name, { start, end }]) => [name, bytes.toString('utf8', start, end)]),
  );
}

describe('the scanner', () => {
  it('finds the wanted fields of the object itself, and not those of objects within', () => {
    const text = '{ "a": {"model": "inner"}, "model" : "llama\\n" , "messages":[{"n":1}, "model"],"n": -1.5e3 }';
    expect(scan(text)).toEqual({ model: '"llama\\n"', messages: '[{"n":1}, "model"]', n: '-1.5e3' });
  });

  it('knows a name whose letters are escaped', () => {
    expect(scan('{"\\u006dodel":"x"}')).toEqual({ model: '"x"' });
  });

  it('finds the same however the bytes were cut', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.json(),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 0, max: 3 }),
        (a, b, size, indent) => {
          const other = JSON.stringify(JSON.parse(b), null, indent);
          expect(scan(`{"x":${other},"messages":${a}}`, size)).toEqual({ messages: a });
        },
      ),
    );
  });

  it('takes what JSON.parse takes, and nothing else', () => {
    const pieces = [
      '{',
      '}',
      '[',
      ']',
      '"a"',
      '"\\u00e9"',
      '"\\x"',
      ':',
      ',',
      '1',
      '01',
      '-',
      '1.5',
      '.5',
      '1e',
      'true',
      'tru',
      'null',
      ' ',
      '\n',
      '"',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 12 }), (parts) => {
        const text = `{"a":${parts.join('')}}`;
        expect(isTaken(() => scan(text))).toBe(isTaken(() => JSON.parse(text)));
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    ['is no object', '[]'],
    ['is empty', ''],
    ['is not closed', '{"a":1'],
    ['goes on', '{"a":1}}'],
    ['has a wanted field twice', '{"model":"a","model":"b"}'],
    ['is nested without end', `{"a":${'['.repeat(50_000)}`],
    ['has a control character in a string', `{"a":"${String.fromCharCode(1)}"}`],
    ['has a number without end', `{"a":${'1'.repeat(1_000)}}`],
  ])('rejects a body that %s', (_what, text) => {
    expect(() => scan(text, 64)).toThrow(JsonFault);
  });
});

function isTaken(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (!(error instanceof JsonFault) && !(error instanceof SyntaxError)) throw error;
    return false;
  }
}
