/** What the definitions of schemas tell of the keys of objects. */
import { closest } from '../faults/did-you-mean.js';

/** The known keys, and the one that an unknown key was probably meant to be: of the object itself, or further down. */
export function expectedKeys(key: string, known: readonly string[]): string {
  const keys = known.filter((path) => !path.includes('.'));
  if (keys.length === 0) return 'no keys';
  const leafOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);
  const leaf = closest(key, keys) ?? closest(key, [...new Set(known.map(leafOf))]);
  const suggestion = known.find((path) => path === leaf) ?? known.find((path) => leafOf(path) === leaf);
  return `one of the keys ${keys.join(', ')}${suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`}`;
}

type Inside = { readonly _zod: { readonly def: { readonly [Of in 'shape' | 'innerType' | 'in' | 'out']?: object } } };

/** The keys of an object schema, and below them those of the objects inside, as `limits.maxRequests`. */
export function keysBelow(schema: unknown): string[] {
  const { shape = {}, innerType, in: read = innerType } = (schema as Inside)._zod.def;
  return read === undefined ? keysIn(shape) : keysBelow(read);
}

export function keysIn(shape: object): string[] {
  return Object.entries(shape).flatMap(([key, inner]) => [key, ...keysBelow(inner).map((path) => `${key}.${path}`)]);
}

/** True for a schema of what may be left out. */
export function mayBeAbsent(schema: unknown): boolean {
  const { innerType, out } = (schema as Inside)._zod.def;
  return innerType !== undefined || (out !== undefined && mayBeAbsent(out));
}
