/** What editors know of a file: JSON Schema, made of the tables that read it. */
import { clone, toJSONSchema } from 'zod/v4/core';
import { type Json, type Keywords, optional, otherwise, type Schema, typed } from './element.js';

/** A row of a table: what the option is, in one sentence, and what it takes. */
export function row<T>(sentence: string, schema: Schema<T>): Schema<T> {
  return typed(clone(schema, { ...schema._zod.def, ...{ sentence } }));
}

/** A row that may be left out, which is the same as writing `given`, if there is that. */
export function option<T>(sentence: string, schema: Schema<T>): Schema<T | undefined>;
export function option<T>(sentence: string, schema: Schema<T>, given: unknown): Schema<T>;
export function option<T>(sentence: string, schema: Schema<T>, given?: unknown): Schema<T | undefined> {
  return row(sentence, given === undefined ? optional(schema) : otherwise(schema, given));
}

/** What elements and rows add to zod's definitions. */
interface Notes {
  readonly json?: Json;
  readonly sentence?: string;
}

/** The JSON Schema of what a schema reads, without `$schema`. */
function jsonOf(schema: Schema<unknown>): Keywords {
  const { $schema: _, ...keywords } = toJSONSchema(schema, {
    target: 'draft-07',
    io: 'input',
    unrepresentable: 'any',
    reused: 'inline',
    override: ({ zodSchema, jsonSchema }) => {
      const { json, sentence }: Notes = { ...(zodSchema._zod.def as object) };
      const own = typeof json === 'function' ? json(jsonOf) : json;
      Object.assign(jsonSchema, own, sentence && { description: sentence });
    },
  });
  return keywords;
}

/** The JSON Schema of a file, as a file of its own. */
export function jsonSchemaOf(title: string, schema: Schema<unknown>): string {
  return `${JSON.stringify({ $schema: 'http://json-schema.org/draft-07/schema#', title, ...jsonOf(schema) }, null, 2)}\n`;
}
