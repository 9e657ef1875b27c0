/** "Did you mean …?" for keys that are nearly right. */
import { closest } from '../faults/did-you-mean.js';
import type { Schema, Shape } from './element.js';

/** The known keys, and the one that an unknown key was probably meant to be: of the shape itself, or further down. */
export function expectedKeys(key: string, shape: Shape): string {
  const keys = Object.keys(shape);
  if (keys.length === 0) return 'no keys';
  const suggestion = closest(key, keys) ?? closestBelow(key, shape);
  return `one of the keys ${keys.join(', ')}${suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`}`;
}

/** The key further down that was probably meant, e.g. `limits.maxRequests`. */
function closestBelow(key: string, shape: Shape): string | undefined {
  const known = keysBelow({ read: () => undefined, shape });
  const leafOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);
  const leaf = closest(key, [...new Set(known.map(leafOf))]);
  return known.find((path) => leafOf(path) === leaf);
}

/** The keys of an object schema, and below them those of the objects inside, as `limits.maxRequests`. */
function keysBelow({ shape = {} }: Schema<unknown>): string[] {
  return Object.entries(shape).flatMap(([key, inner]) => [key, ...keysBelow(inner).map((path) => `${key}.${path}`)]);
}
