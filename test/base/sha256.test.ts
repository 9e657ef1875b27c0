import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/base/seeded-random.js';
import { sha256 } from '../../src/base/sha256.js';

const hexOf = (message: Uint8Array): string => Buffer.from(sha256(message).buffer).toString('hex');
const hexOfNode = (message: Uint8Array): string => createHash('sha256').update(message).digest('hex');

describe('sha256', () => {
  it('gives the digests of the standard', () => {
    const text = (message: string): string => hexOf(new TextEncoder().encode(message));
    expect(text('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(text('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq')).toBe(
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
    );
  });

  it('gives the digest that Node gives, at every length around the ends of its blocks', () => {
    const random = seededRandom(1);
    for (let length = 0; length <= 200; length++) {
      const message = Uint8Array.from({ length }, () => Math.floor(random() * 256));
      expect(hexOf(message), `${length} bytes`).toBe(hexOfNode(message));
    }
    const long = Uint8Array.from({ length: 100_000 }, () => Math.floor(random() * 256));
    expect(hexOf(long)).toBe(hexOfNode(long));
  });
});
