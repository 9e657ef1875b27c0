import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TextPieces } from '../../../src/base/stream/text-pieces.js';

function read(bytes: Uint8Array, cuts: readonly number[]): string {
  const pieces = new TextPieces();
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let text = '';
  let at = 0;
  for (const end of [...ends, bytes.length]) {
    text += pieces.next(bytes.subarray(at, end));
    at = end;
  }
  return text + pieces.end();
}

const characters = fc.array(fc.constantFrom('a', '\n', 'é', '€', '😀', '\ufeff', '\ufffd'), { maxLength: 20 });
const garbage = fc.constantFrom([0x80], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xff]);

it('is the text of the whole, wherever it is cut', () => {
  fc.assert(
    fc.property(characters, fc.array(fc.nat(), { maxLength: 8 }), (text, cuts) => {
      const bytes = new TextEncoder().encode(text.join(''));
      expect(read(bytes, cuts)).toBe(new TextDecoder().decode(bytes));
    }),
  );
});

it('replaces what is no UTF-8 as a decoder of the whole does, wherever it is cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(garbage, fc.constant([0x61])), { maxLength: 10 }),
      fc.array(fc.nat(), { maxLength: 6 }),
      (parts, cuts) => {
        const bytes = Uint8Array.from(parts.flat());
        expect(read(bytes, cuts)).toBe(new TextDecoder().decode(bytes));
      },
    ),
  );
});
