/** Writes fields into a JSON body, and takes them out, by splicing its bytes. */
import type { Span } from './json-scanner.js';

/** Name → value in JSON; undefined, which at most one may be: the field is not to be there. */
export type Fields = Readonly<Record<string, string | undefined>>;

type Edit = Readonly<{ start: number; end: number; text: string }>;

/** The same body with these fields; every other byte stays as it came. `spans`: of the fields that are there. */
export function withFields(bytes: Buffer, spans: ReadonlyMap<string, Span>, fields: Fields): Buffer {
  const edits: Edit[] = [];
  const added: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    const span = spans.get(name);
    if (span === undefined) {
      if (value !== undefined) added.push(`${JSON.stringify(name)}:${value}`);
    } else if (value === undefined) edits.push({ ...memberAt(bytes, span), text: '' });
    else edits.push({ start: span.start, end: span.end, text: value });
  }
  if (added.length > 0) edits.push(addition(bytes, added, edits));
  if (edits.length === 0) return bytes;
  const parts: Buffer[] = [];
  let at = 0;
  for (const { start, end, text } of edits.sort((a, b) => a.start - b.start || a.end - b.end)) {
    parts.push(bytes.subarray(at, start), Buffer.from(text));
    at = end;
  }
  return Buffer.concat([...parts, bytes.subarray(at)]);
}

/** Behind the opening brace. A comma follows unless nothing else stays in the object. */
function addition(bytes: Buffer, added: readonly string[], edits: readonly Edit[]): Edit {
  const start = bytes.indexOf('{') + 1;
  const taken = edits.find(({ start: first, text }) => text === '' && afterSpace(bytes, start) >= first);
  const rest = afterSpace(bytes, taken?.end ?? start);
  return { start, end: start, text: `${added.join(',')}${bytes[rest] === 0x7d ? '' : ','}` };
}

/** The member with the comma that it leaves over: the one behind it, or else the one before it. */
function memberAt(bytes: Buffer, { name, end }: Span): { start: number; end: number } {
  const next = afterSpace(bytes, end);
  if (bytes[next] === 0x2c) return { start: name, end: next + 1 };
  let before = name - 1;
  while (whiteSpace.includes(bytes[before]!)) before--;
  return { start: bytes[before] === 0x2c ? before : name, end };
}

const whiteSpace: readonly number[] = [0x20, 0x0a, 0x0d, 0x09];

function afterSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (whiteSpace.includes(bytes[at]!)) at++;
  return at;
}
