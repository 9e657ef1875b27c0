/**
 * Gives the model of an answer the name that the client asked for, by its bytes, wherever pieces end. Invariant: every
 * other byte passes as it came; what is held back is shorter than a member with the name, and goes with the next piece.
 */

const member = '"model"';
/** Blanks between the name and its value; behind more it is not looked for. */
const blanks = '[ \\t\\n\\r]{0,16}';
const separator = new RegExp(`^${blanks}(?::${blanks})?`);

/** A letter for each byte. */
const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');

export class RenamedAnswer {
  private readonly from: string;
  private readonly to: string;
  private readonly named: RegExp;
  private held = '';

  constructor(from: string, to: string) {
    this.from = textOf(Buffer.from(JSON.stringify(from)));
    this.to = textOf(Buffer.from(JSON.stringify(to)));
    this.named = new RegExp(`(${member}${blanks}:${blanks})${this.from.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&')}`, 'g');
  }

  pass(piece: Uint8Array, isLast: boolean): Uint8Array {
    const text = this.held + textOf(piece);
    let from = 0;
    const renamed = text.replace(this.named, (found: string, name: string, at: number) => {
      from = at + found.length;
      return name + this.to;
    });
    // The name that was replaced ends with a quote, which begins nothing.
    let end = isLast ? -1 : text.indexOf('"', from);
    while (end >= 0 && !this.mayBegin(text.slice(end))) end = text.indexOf('"', end + 1);
    this.held = end < 0 ? '' : text.slice(end);
    return Buffer.from(renamed.slice(0, renamed.length - this.held.length), 'latin1');
  }

  /** Whether what follows can make a member with the name of it. */
  private mayBegin(text: string): boolean {
    if (!text.startsWith(member)) return member.startsWith(text);
    const [between = ''] = separator.exec(text.slice(member.length)) ?? [];
    const value = text.slice(member.length + between.length);
    return value === '' || (between.includes(':') && this.from.startsWith(value));
  }
}
