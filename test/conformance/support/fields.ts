/**
 * Which fields of vectors their runners look at. A key that a runner declares and never reads would pass for
 * conformance, so every field of a kind must be read in at least one of its vectors, or stand in `not-compared.ts`.
 * Whether it is read in each may depend on the values beside it.
 */
import { notCompared } from './not-compared.js';
import type { Vector } from './vectors.js';

export class Fields {
  /** By kind: path, such as `input.items[].bytes` → whether anything read it. */
  private readonly kinds = new Map<string, Map<string, boolean>>();

  /** The same vector, and whoever reads it is noticed. */
  watch(vector: Vector): Vector {
    const fields = this.kinds.get(vector.kind) ?? new Map<string, boolean>();
    this.kinds.set(vector.kind, fields);
    const [input, expect] = [watched(fields, vector.input, 'input'), watched(fields, vector.expect, 'expect')];
    return { ...vector, input, expect };
  }

  unread(): string[] {
    return [...this.kinds].flatMap(([kind, fields]) => {
      // A vector without `input` is its own, and holds its expectations too.
      const listed = ['input.expect', ...Object.keys(notCompared[kind] ?? {})];
      const isListed = (path: string): boolean =>
        listed.some((each) => path === each || (/^[.[]/.test(path.slice(each.length)) && path.startsWith(each)));
      return [...fields].flatMap(([path, isRead]) => (isRead || isListed(path) ? [] : [`${kind} ${path}`]));
    });
  }
}

function watched<T extends object>(fields: Map<string, boolean>, value: T, path: string): T {
  const pathOf = (key: string): string => (Array.isArray(value) ? `${path}[]` : `${path}.${key}`);
  for (const key of Object.keys(value)) if (!fields.has(pathOf(key))) fields.set(pathOf(key), false);
  const inner = new Map<string, object>();
  return new Proxy(value, {
    get: (target, key, receiver) => {
      const found: unknown = Reflect.get(target, key, receiver);
      if (typeof key !== 'string' || !Object.hasOwn(target, key)) return found;
      if (Array.isArray(target) && key === 'length') return found;
      fields.set(pathOf(key), true);
      if (typeof found !== 'object' || found === null) return found;
      const known = inner.get(key) ?? watched(fields, found, pathOf(key));
      inner.set(key, known);
      return known;
    },
  });
}
