/** Names of any text as parts of keys. */
import { sha256 } from '@noble/hashes/sha2';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils';

/** A hash, or the text with everything encoded that means something in a key. Never throws. */
export function keyPart(text: string, isHashed: boolean): string {
  if (isHashed) return bytesToHex(sha256(utf8ToBytes(text))).slice(0, 32);
  // Half a surrogate pair cannot be encoded. A hash takes it for the same character.
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));
}
