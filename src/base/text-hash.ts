/** Text to 32 bits, evenly spread and the same in every process. Not for secrets. */

/** The start value of a hash that does not continue another. */
const offsetBasis = 0x811c9dc5;

/** FNV-1a of the first `length` UTF-16 units after `seed`, finalized as MurmurHash3; an integer from 0 to 2³² − 1. */
export function textHash(text: string, seed: number = offsetBasis, length: number = text.length): number {
  let bits = seed;
  for (let i = 0; i < length; i++) bits = Math.imul(bits ^ text.charCodeAt(i), 0x01000193);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
