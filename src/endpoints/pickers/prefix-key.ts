/** A short name for how a prompt begins, for `affinity`. */
import { textHash } from '../../base/text-hash.js';

/**
 * A key that prompts with the same first `characters` share. Take so many that system prompts differ within them, and
 * not so many that the users of one differ too. Different beginnings meet in one key once in 2³²; they then share a
 * server. O(characters).
 */
export function prefixKey(prompt: string, characters = 256): string {
  return textHash(prompt, undefined, Math.min(characters, prompt.length)).toString(36);
}
