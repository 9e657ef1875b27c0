/** Bodies of requests and answers: pieces change nothing, and what is accepted is JSON. */
import { JsonFault, JsonScanner } from '../src/gateway/bodies/json-scanner.js';
import { JsonMember } from '../src/upstream/usage/json-member.js';
import { inPieces, orName, same } from './inputs.js';

const wanted = new Set(['model', 'stream']);
/** Not checked by design: UTF-8, and control characters inside of media. */
const isChecked = (bytes: Buffer): boolean => bytes.every((byte) => byte >= 0x20 && byte < 0x7f);

function scanned(pieces: readonly Buffer[]) {
  const scanner = new JsonScanner(wanted);
  for (const piece of pieces) scanner.push(piece);
  return [...scanner.end()];
}

export function fuzz(input: Buffer): void {
  const { whole, pieces } = inPieces(input);
  const mayFail = (error: unknown): boolean => error instanceof JsonFault;
  const spans = orName(() => scanned([whole]), mayFail);
  same(
    'spans in pieces',
    orName(() => scanned(pieces), mayFail),
    spans,
  );
  const text = whole.toString('latin1');
  if (typeof spans !== 'string' && isChecked(whole)) {
    JSON.parse(text);
    for (const [, { start, end }] of spans) JSON.parse(text.slice(start, end));
  }
  const member = (parts: readonly Buffer[]): unknown => {
    const reader = new JsonMember('usage', 1_000);
    for (const part of parts) reader.push(part.toString('latin1'));
    return reader.value;
  };
  same('a member in pieces', member(pieces), member([whole]));
}
