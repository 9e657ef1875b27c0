/** Checks what the functions of `headgate/simulator` are called with. */
import * as s from '../base/schema/schema.js';
import type { Schema } from '../index.js';

export const anyText: Schema<string> = s.value('a text', (given): given is string => typeof given === 'string');

/** An object, and no list. */
export const fields: Schema<object> = s.value(
  'an object',
  (given): given is object => typeof given === 'object' && given !== null && !Array.isArray(given),
);

/** A list that is not empty. */
export function some<T>(schema: Schema<readonly T[]>): Schema<readonly T[]> {
  return s.element((given, report) => {
    if (Array.isArray(given) && given.length === 0) report('one entry at least');
    return s.readBy(schema, given, report);
  });
}

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
