/** Bytes in pieces, short ones copied into blocks. Invariant: held is at most twice `length`, and one piece more. */

/** A longer piece is kept as it came. */
const longestCopied = 1024;
const largestBlock = 65_536;
const noBlock = new Uint8Array(0);

export class GatheredBytes {
  length = 0;
  private readonly pieces: Uint8Array[] = [];
  /** Where short pieces go, and how much of it is used. */
  private block: Uint8Array = noBlock;
  private used = 0;

  push(piece: Uint8Array): void {
    const { length } = piece;
    this.length += length;
    // Most bodies are one piece.
    if (length > longestCopied || this.pieces.length === 0) {
      this.closeBlock();
      this.pieces.push(piece);
      return;
    }
    if (length > this.block.length - this.used) {
      this.closeBlock();
      this.block = new Uint8Array(Math.min(Math.max(this.length, longestCopied), largestBlock));
    }
    this.block.set(piece, this.used);
    this.used += length;
  }

  /** All bytes in the order in which they came. The list is the caller's when nothing more comes. */
  parts(): Uint8Array[] {
    this.closeBlock();
    return this.pieces;
  }

  private closeBlock(): void {
    if (this.used > 0) this.pieces.push(this.block.subarray(0, this.used));
    this.block = noBlock;
    this.used = 0;
  }
}
