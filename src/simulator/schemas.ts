/** Schemas that the simulator's files and functions share: of arguments, and of values of several shapes. */
import { describeValue } from '../base/faults/flow-config-error.js';
import * as s from '../base/schema/schema.js';
import type { Schema } from '../index.js';

export const anyText: Schema<string> = s.value('a text', (given): given is string => typeof given === 'string');

/** An object, and no list. */
export const fields: Schema<object> = s.value('an object', s.isRecord);

export const hooks: Schema<object> = s.object({
  onProgress: s.optional(s.callable<(done: number) => void>('a function of the part that is done')),
});

/** The arguments by their names. @throws FlowConfigError that names `subject` and every argument that is wrong */
export function checkArguments<T extends object>(
  subject: string,
  given: T,
  shape: { readonly [Name in keyof T]-?: Schema<unknown> },
): void {
  s.parse(s.object(shape), given, subject);
}

/** Shapes of values that are told apart by the name in one of their fields. */
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
      if (!s.isRecord(given) && plain !== undefined) return s.readBy(plain, given, report);
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
