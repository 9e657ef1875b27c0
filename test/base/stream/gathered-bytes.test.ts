import { describe, expect, it } from 'vitest';
import { GatheredBytes } from '../../../src/base/stream/gathered-bytes.js';

function gathered(pieces: readonly Uint8Array[]): GatheredBytes {
  const bytes = new GatheredBytes();
  for (const piece of pieces) bytes.push(piece);
  return bytes;
}

describe('bytes that are gathered', () => {
  it('are those of all pieces, in their order', () => {
    const pieces = [3, 1, 1024, 1025, 0, 700, 700, 2, 90_000, 1].map((length, index) =>
      new Uint8Array(length).fill(index),
    );
    const bytes = gathered(pieces);
    expect(Buffer.concat(bytes.parts())).toEqual(Buffer.concat(pieces));
    expect(bytes.length).toBe(Buffer.concat(pieces).length);
  });

  it('go on after they were looked at', () => {
    const bytes = gathered([Uint8Array.of(1), Uint8Array.of(2)]);
    expect(Buffer.concat(bytes.parts())).toEqual(Buffer.of(1, 2));
    bytes.push(Uint8Array.of(3));
    expect(Buffer.concat(bytes.parts())).toEqual(Buffer.of(1, 2, 3));
  });

  it('are a few blocks when each byte came by itself, and hold at most twice their length', () => {
    const bytes = gathered(Array.from({ length: 200_000 }, (_, index) => Uint8Array.of(index & 255)));
    const parts = bytes.parts();
    expect(parts.length).toBeLessThan(20);
    const held = parts.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
    expect(held).toBeLessThan(2 * bytes.length);
    expect(Buffer.concat(parts).every((byte, index) => byte === (index & 255))).toBe(true);
  });
});
