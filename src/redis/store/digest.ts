/** Digests as hexadecimal text. A client of a store needs sockets, so it runs where Node's modules are. */
import { createHash } from 'node:crypto';

export function hexDigest(algorithm: 'sha1' | 'sha256', text: string): string {
  return createHash(algorithm).update(text).digest('hex');
}
