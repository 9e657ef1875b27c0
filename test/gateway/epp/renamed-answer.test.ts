import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RenamedAnswer } from '../../../src/gateway/epp/renamed-answer.js';

/** What passes when the text comes in pieces of these lengths, and the rest in one. */
function passed(text: string, lengths: readonly number[], from = 'llama-3-70b', to = 'chat'): string {
  const renamed = new RenamedAnswer(from, to);
  const bytes = Buffer.from(text);
  const out: Uint8Array[] = [];
  let at = 0;
  for (const length of lengths) {
    out.push(Buffer.from(renamed.pass(bytes.subarray(at, at + length), false)));
    at = Math.min(at + length, bytes.length);
  }
  out.push(renamed.pass(bytes.subarray(at), true));
  return Buffer.concat(out).toString();
}

const name = '"llama-3-70b"';
const fragments = [
  '"model":',
  '"model" :\n ',
  '"mod',
  'el":',
  name,
  '"llama-3-7',
  '"llama-3-70b-instruct"',
  '"other"',
  '{"id":1,',
  '"content":"the \\"model\\": é 🙂",',
  'data: ',
  '\n\n',
  ': ',
  '"',
];

describe('the model of an answer', () => {
  it('gets the client’s name wherever pieces end, and every other byte passes as it came', () => {
    const texts = fc.array(fc.constantFrom(...fragments), { maxLength: 30 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(texts, fc.array(fc.nat(12), { maxLength: 60 }), (text, lengths) => {
        const whole = text.replace(/("model"[ \n]*:[ \n]*)"llama-3-70b"/g, '$1"chat"');
        expect(passed(text, lengths)).toBe(whole);
      }),
      { numRuns: 2_000 },
    );
  });

  it('keeps back less than a member with the name', () => {
    const renamed = new RenamedAnswer('m'.repeat(50), 'chat');
    let sent = 0;
    let got = 0;
    const text = Buffer.from(`{"model": "${'m'.repeat(49)}n", "x": "${'"model":'.repeat(40)}"}`);
    for (const byte of text) {
      sent++;
      got += renamed.pass(Buffer.of(byte), false).length;
      expect(sent - got).toBeLessThan(80);
    }
    got += renamed.pass(Buffer.alloc(0), true).length;
    expect(got).toBe(sent);
  });

  it('is not looked for behind more blanks than a server writes', () => {
    const text = `{"model":${' '.repeat(40)}${name}}`;
    expect(passed(text, [])).toBe(text);
  });

  it('gets names that need escapes in JSON', () => {
    expect(passed('{"model":"a\\"b"}', [11], 'a"b', 'c\\d')).toBe('{"model":"c\\\\d"}');
  });

  it('owns what it keeps: the transport may write over the piece', () => {
    const renamed = new RenamedAnswer('m', 'chat');
    const piece = Buffer.from('{"model":');
    const first = Buffer.from(renamed.pass(piece, false));
    piece.fill(0);
    expect(Buffer.concat([first, renamed.pass(Buffer.from('"m"}'), true)]).toString()).toBe('{"model":"chat"}');
  });
});
