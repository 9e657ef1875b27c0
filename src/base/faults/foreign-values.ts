/** Values that foreign code made, which may throw at every touch. */
import { isPromise } from '../async-function.js';

const longest = 200;

/** The value as text, shortened; never throws. */
export function textOf(value: unknown): string {
  try {
    if (isPromise(value)) return 'a promise';
    const text = String(value);
    return text.length > longest ? `${text.slice(0, longest - 3)}...` : text;
  } catch {
    return `a value that cannot become text (${typeof value})`;
  }
}

const unreadable: unique symbol = Symbol('a getter that throws');

export function memberOf(plugin: object, name: PropertyKey): unknown {
  try {
    return Reflect.get(plugin, name);
  } catch {
    return unreadable;
  }
}

/** Tells `failed` of the rejection of a promise that nobody awaits, which would end a Node process. Never throws. */
export function disown(value: unknown, failed: (error: unknown) => void): void {
  if (typeof value !== 'object' || value === null) return;
  try {
    if (isPromise(value)) Promise.resolve(value).then(undefined, failed);
  } catch (error) {
    failed(error);
  }
}

/** True for an object whose members of these names are numbers. Throws for members that cannot be read. */
export function hasNumbers(value: unknown, names: readonly string[]): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => {
    const figure: unknown = Reflect.get(value, name);
    return typeof figure === 'number' && !Number.isNaN(figure);
  });
}
