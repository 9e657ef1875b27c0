import { expect, it } from 'vitest';
import { readToFirstToken } from '../../../src/base/stream/first-token.js';

it('a beginning that comes byte by byte is held in a few chunks', async () => {
  const text = `: wait\n\ndata: {"choices":[{"delta":{"role":"assistant"}}]}\n\n${': still\n'.repeat(2_000)}\n`;
  const bytes = [...Buffer.from(text)].map((byte) => Uint8Array.of(byte));
  const reader = { read: async () => ({ done: bytes.length === 0, value: bytes.shift() }) };
  const chunks = await readToFirstToken(reader);
  expect(Buffer.concat(chunks).toString()).toBe(text);
  expect(chunks.length).toBeLessThan(20);
});
