/** Text out of UTF-8 in pieces. Most end with a whole character, and need no dearer decoder that remembers. */

const atStart = /* @__PURE__ */ new TextDecoder();
/** In the middle of a text this is no byte order mark. */
const inside = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });

export class TextPieces {
  private hasBegun = false;
  /** Set while the last piece ended within a character. */
  private decoder: InstanceType<typeof TextDecoder> | undefined = undefined;

  /** False while a character is cut off. */
  get isWhole(): boolean {
    return this.decoder === undefined;
  }

  next(piece: Uint8Array): string {
    const { length } = piece;
    if (length === 0) return '';
    const isWhole = piece[length - 1]! < 0x80;
    if (this.decoder === undefined && !isWhole) this.decoder = new TextDecoder('utf-8', { ignoreBOM: this.hasBegun });
    const decoder = this.decoder ?? (this.hasBegun ? inside : atStart);
    this.hasBegun = true;
    if (isWhole) this.decoder = undefined;
    return decoder.decode(piece, { stream: !isWhole });
  }

  /** The text for a character that was cut off. */
  end(): string {
    return this.decoder?.decode() ?? '';
  }
}
