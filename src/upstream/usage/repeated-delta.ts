/**
 * Recognises events of a stream that differ from an earlier one in the text of their delta alone, without parsing them:
 * most events of a generation do, and parsing is most of what reading them costs.
 *
 *     {"id":"c1","choices":[{"delta":{"content":" token"}}]}
 *     └──────────── before ───────────────────┘ text └ after ┘
 *
 * Invariant: what `has` accepts is the event that was learnt with another text in it, which is not empty. Where the
 * learnt text stands several times, or is written with escapes, nothing is learnt.
 */
import { fieldsOf } from '../../base/stream/content-pieces.js';

const nothing = /* @__PURE__ */ new Uint8Array(0);
const quote = 34;
const backslash = 92;
const lineFeed = 10;
const carriageReturn = 13;

export class RepeatedDelta {
  /** No event begins with a space. */
  private before = ' ';
  private after = '';
  /** Both as bytes of a stream, once an event was like the one that was learnt. */
  private head = nothing;
  private tail = nothing;

  /** Whether the event is like the one that was learnt last. */
  has(data: string): boolean {
    const { before, after } = this;
    if (!data.startsWith(before) || !data.endsWith(after)) return false;
    const end = data.length - after.length;
    // The first quote ends the text, unless an escape comes before it.
    const isLike =
      end > before.length && data.indexOf('"', before.length) === end && !data.includes('\\', before.length);
    if (isLike && this.head === nothing) {
      const utf8 = new TextEncoder();
      this.head = utf8.encode(`data: ${before}`);
      this.tail = utf8.encode(`${after}\n\n`);
    }
    return isLike;
  }

  /** Whether the piece is one such event alone, from `data: ` to the empty line; it needs no decoding then. */
  isPiece(piece: Uint8Array): boolean {
    const { head, tail } = this;
    const end = piece.length - tail.length;
    if (head === nothing || end <= head.length) return false;
    for (let i = 0; i < head.length; i++) if (piece[i] !== head[i]) return false;
    for (let i = 0; i < tail.length; i++) if (piece[end + i] !== tail[i]) return false;
    for (let i = head.length; i < end; i++) {
      const byte = piece[i];
      if (byte === quote || byte === backslash || byte === lineFeed || byte === carriageReturn) return false;
    }
    return true;
  }

  /** Learns an event that brings one piece of content, and nothing else to read. */
  learn(data: string, event: unknown): void {
    this.before = ' ';
    this.head = nothing;
    const text = textOf(event);
    if (text === undefined) return;
    const quoted = `"${text}"`;
    const at = data.indexOf(quoted);
    if (at < 0 || at !== data.lastIndexOf(quoted)) return;
    this.before = data.slice(0, at + 1);
    this.after = data.slice(at + 1 + text.length);
  }
}

/** The text that a chunk of a chat completion brings. */
function textOf(event: unknown): string | undefined {
  const choices = fieldsOf(event)?.choices;
  const text = Array.isArray(choices) ? fieldsOf(fieldsOf(choices[0])?.delta)?.content : undefined;
  return typeof text === 'string' ? text : undefined;
}
