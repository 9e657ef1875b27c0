/** Names of any text as parts of keys. */
import { hexDigest } from './digest.js';

/** A hash, or the text with everything encoded that means something in a key. Never throws. */
export function keyPart(text: string, isHashed: boolean): string {
  if (isHashed) return hashedName(text);
  // Half a surrogate pair cannot be encoded. A hash takes it for the same character.
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));
}

/** What stands for a name that is secret or long: 32 hexadecimal digits, the first half of its SHA-256. */
export function hashedName(text: string): string {
  return hexDigest('sha256', text).slice(0, 32);
}
