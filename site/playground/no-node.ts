/** In place of what the store on Redis takes of Node. Nothing here calls it: the names of keys are short and no secret. */
export const env: Readonly<Record<string, string | undefined>> = {};

export function createHash(): never {
  throw new Error('A browser has no node:crypto');
}
