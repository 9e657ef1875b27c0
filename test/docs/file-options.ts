/** The tables of files, which tell everything themselves: zod's definitions are walked. */
import { type Schema, validate } from '../../src/base/schema/element.js';
import type { Row } from './option-rows.js';

/** What the definitions of schemas have, by kind. */
interface Definition {
  readonly type: string;
  readonly sentence?: string;
  readonly defaultValue?: unknown;
  readonly innerType?: Schema<unknown>;
  readonly in?: Schema<unknown>;
  readonly out?: Schema<unknown>;
  readonly element?: Schema<unknown>;
  readonly shape?: Readonly<Record<string, Schema<unknown>>>;
  readonly json?: unknown;
}

/** A schema without what stands around it. */
interface Bare {
  readonly schema: Schema<unknown>;
  readonly definition: Definition;
  readonly sentence: string;
  readonly isOptional: boolean;
  readonly otherwise: string;
}

function bareOf(schema: Schema<unknown>): Bare {
  const definition: Definition = { ...(schema._zod.def as object), type: schema._zod.def.type };
  // One side of a pipe is the table, the other a function.
  const side = definition.in?._zod.def.type === 'transform' ? definition.out : definition.in;
  const { innerType = side, sentence, defaultValue } = definition;
  if (innerType === undefined)
    return { schema, definition, sentence: sentence ?? '', isOptional: false, otherwise: '' };
  const inner = bareOf(innerType);
  const isPlain = typeof defaultValue !== 'object' && defaultValue !== undefined;
  return {
    ...inner,
    sentence: sentence ?? inner.sentence,
    isOptional: inner.isOptional || definition.type !== 'pipe',
    otherwise: isPlain ? `\`${String(defaultValue)}\`` : inner.otherwise,
  };
}

/**
 * The rows of an object's keys, with those of the objects inside. `elsewhere` says where keys are told of that are not
 * told of here.
 */
export function rowsOf(schema: Schema<unknown>, elsewhere: Elsewhere, path = ''): Row[] {
  return keysOf(schema).flatMap(([name, value]) => {
    const key = path === '' ? name : `${path}.${name}`;
    const { sentence, isOptional, otherwise, ...bare } = bareOf(value);
    const row = { key: `\`${key}\``, ...withDefault(sentence, isOptional ? otherwise : 'required') };
    const reference = elsewhere[key];
    if (reference !== undefined) return [{ ...row, takes: reference }];
    const { schema: inside = bare.schema, at = '', words = '' } = insideOf(bare.definition) ?? {};
    if (keysOf(inside).length === 0) return [{ ...row, takes: words + wordsOf(inside) }];
    return [{ ...row, takes: '' }, ...rowsOf(inside, elsewhere, key + at)];
  });
}

export type Elsewhere = Readonly<Record<string, string>>;

/** The keys of an object; none of what is no object. */
export function keysOf(schema: Schema<unknown>): [string, Schema<unknown>][] {
  return Object.entries(bareOf(schema).definition.shape ?? {});
}

export function sentenceOf(schema: Schema<unknown>): string {
  return bareOf(schema).sentence;
}

/** A default that depends stands in the sentence: "`50ms` without it". */
function withDefault(sentence: string, otherwise: string): Pick<Row, 'sentence' | 'otherwise'> {
  const [told, after, before] = /; ([^;]+) without it(?=[,.;])| Without it: ([^.]+)\./.exec(sentence) ?? [];
  const found = after ?? before;
  if (told === undefined || found === undefined) return { sentence, otherwise };
  return { sentence: sentence.replace(told, ''), otherwise: found };
}

/** What a list or a record consists of, how the places in it are written, and in words. */
function insideOf({
  element,
  shape,
  json,
}: Definition): { schema: Schema<unknown>; at: string; words: string } | undefined {
  if (element !== undefined) return { schema: element, at: '[]', words: 'a list, each ' };
  if (typeof json !== 'function' || shape !== undefined) return undefined;
  let schema: Schema<unknown> | undefined;
  const keywords = json((entry: Schema<unknown>) => {
    schema = entry;
    return {};
  });
  return schema && 'additionalProperties' in keywords ? { schema, at: '.NAME', words: 'by name, each ' } : undefined;
}

/** As the error of a value that nothing takes. */
function wordsOf(schema: Schema<unknown>): string {
  const verdict = validate(schema, Symbol());
  const expected = verdict.ok ? '' : (verdict.issues[0]?.expected ?? '');
  // Many keys take one: the page says once what it is.
  return expected.replace(/^a secret as text, .*/, 'a secret');
}
