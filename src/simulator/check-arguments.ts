/** Checks what the functions of `headgate/simulator` are called with. */
import { callable, element, object, optional, parse, readBy, value } from '../base/schema/element.js';
import type { Schema } from '../index.js';

export const anyText: Schema<string> = value('a text', (given): given is string => typeof given === 'string');

/** An object, and no list. */
export const fields: Schema<object> = value(
  'an object',
  (given): given is object => typeof given === 'object' && given !== null && !Array.isArray(given),
);

/** A list that is not empty. */
export function some<T>(schema: Schema<readonly T[]>): Schema<readonly T[]> {
  return element((given, report) => {
    if (Array.isArray(given) && given.length === 0) report('one entry at least');
    return readBy(schema, given, report);
  });
}

export const hooks: Schema<object> = object({
  onProgress: optional(callable<(done: number) => void>('a function of the part that is done')),
});

/**
 * The arguments by their names.
 * @throws FlowConfigError that names `subject` and every argument that is wrong
 */
export function checkArguments<T extends object>(
  subject: string,
  given: T,
  shape: { readonly [Name in keyof T]-?: Schema<unknown> },
): void {
  parse(object(shape), given, subject);
}
