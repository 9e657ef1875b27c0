/** A short name for how a prompt begins, for `affinity`. */
import { textHash } from '../../base/text-hash.js';

/**
 * A key that prompts with the same first `characters` share. Choose `characters` so large that system prompts differ
 * within them, and so small that users of one system prompt do not. Two different beginnings get the same key once in
 * 2³²; they then share a server. O(characters).
 */
export function prefixKey(prompt: string, characters = 256): string {
  return textHash(prompt, undefined, Math.min(characters, prompt.length)).toString(36);
}
