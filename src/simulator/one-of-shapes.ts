/** Values of several shapes, told apart by the name in one of their fields. */
import { describeValue } from '../base/faults/flow-config-error.js';
import * as s from '../base/schema/schema.js';
import type { Schema } from '../index.js';

/** By name. */
export type Shapes<Name extends string> = Readonly<Record<Name, Schema<object>>>;

/** Reads a value by the shape that its field `key` names; with `plain`, what is no object, which `what` names. */
export function oneOfShapes<T>(
  key: 'type' | 'model',
  shapes: Shapes<string>,
  what?: string,
  plain?: Schema<T>,
): Schema<T> {
  const names = Object.keys(shapes).filter((name) => name !== 'custom');
  const expected = `${what === undefined ? '' : `${what}, or `}one of the ${key}s ${names.join(', ')}`;
  return s.element(
    (given, report) => {
      const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
      if (!isObject && plain !== undefined) return s.readBy(plain, given, report);
      const name: unknown = Reflect.get(Object(given), key);
      const shape = typeof name === 'string' && Object.hasOwn(shapes, name) ? shapes[name] : undefined;
      if (shape !== undefined) return s.readBy(shape, given, report) as T | undefined;
      return report(expected, [key], describeValue(name));
    },
    (of) => ({
      anyOf: [
        ...Object.entries(shapes).map(([name, shape]) => named(of(shape), key, name)),
        ...(plain === undefined ? [] : [of(plain)]),
      ],
    }),
  );
}

/** The shape, whose field `key` is that name. */
function named(shape: s.Keywords, key: string, name: string): s.Keywords {
  const { properties, required }: { properties?: object; required?: readonly string[] } = shape;
  return { ...shape, properties: { ...properties, [key]: { const: name } }, required: [...(required ?? []), key] };
}
