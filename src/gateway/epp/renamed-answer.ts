/**
 * Gives the model of an answer the name that the client asked for, by its bytes, wherever pieces end. Invariant: every
 * other byte passes as it came; what is held back is shorter than a member with the name, and goes with the next piece.
 */

const member = Buffer.from('"model"');
const quote = 0x22;
const colon = 0x3a;
/** More blanks than this between the name and its value are not looked through. */
const mostBlanks = 16;
const noBytes = Buffer.alloc(0);

export class RenamedAnswer {
  private readonly from: Buffer;
  private readonly to: Buffer;
  private held: Buffer = noBytes;

  constructor(from: string, to: string) {
    this.from = Buffer.from(JSON.stringify(from));
    this.to = Buffer.from(JSON.stringify(to));
  }

  pass(piece: Uint8Array, isLast: boolean): Uint8Array {
    const bytes = this.held.length === 0 ? asBuffer(piece) : Buffer.concat([this.held, piece]);
    this.held = noBytes;
    const parts: Buffer[] = [];
    let from = 0;
    for (let at = bytes.indexOf(member); at >= 0; at = bytes.indexOf(member, at + 1)) {
      const value = this.valueAt(bytes, at + member.length);
      if (value === 'unknown' && !isLast) return this.hold(bytes, from, at, parts);
      if (typeof value !== 'number') continue;
      parts.push(bytes.subarray(from, value), this.to);
      from = value + this.from.length;
    }
    if (isLast) return joined(parts, bytes.subarray(from));
    // The name that was replaced ends with a quote, which begins nothing.
    return this.hold(bytes, from, Math.max(from, bytes.length - beginning(bytes)), parts);
  }

  /** Where the name begins that is replaced; `unknown` where the bytes end before it can be told. */
  private valueAt(bytes: Buffer, after: number): number | 'unknown' | 'other' {
    let at = after;
    let hasColon = false;
    for (; at < bytes.length && at < after + mostBlanks; at++) {
      const byte = bytes[at];
      if (byte === quote) break;
      if (byte === colon && !hasColon) hasColon = true;
      else if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return 'other';
    }
    if (at < bytes.length && (bytes[at] !== quote || !hasColon)) return 'other';
    const there = bytes.subarray(at, at + this.from.length);
    if (!there.equals(this.from.subarray(0, there.length))) return 'other';
    return there.length < this.from.length ? 'unknown' : at;
  }

  private hold(bytes: Buffer, from: number, at: number, parts: Buffer[]): Uint8Array {
    // A copy, since the piece belongs to the transport.
    this.held = Buffer.from(bytes.subarray(at));
    return joined(parts, bytes.subarray(from, at));
  }
}

/** How many of the last bytes may be the beginning of a member. */
function beginning(bytes: Buffer): number {
  for (let length = Math.min(member.length - 1, bytes.length); length > 0; length--)
    if (bytes.subarray(bytes.length - length).equals(member.subarray(0, length))) return length;
  return 0;
}

function joined(parts: Buffer[], rest: Buffer): Uint8Array {
  return parts.length === 0 ? rest : Buffer.concat([...parts, rest]);
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
