/** Keys and tokens, which may stand in the file, in an environment variable, or in a file of their own. */
import * as z from 'zod/mini';
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';

export interface SecretSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => string;
  /** Called instead of failing when a variable or file is missing: for a check on another machine. */
  readonly onMissing?: ((what: string) => void) | undefined;
}

const json = { anyOf: [{ type: 'string', minLength: 1 }, ...['env', 'file'].map(source)] };

function source(name: string): object {
  return { type: 'object', properties: { [name]: { type: 'string' } }, required: [name], additionalProperties: false };
}

const expected = 'a secret as text, { env: NAME } or { file: PATH }';

/** A section with secrets: when something else stands in its place, such as a secret, messages say its kind alone. */
export function section<T>(schema: Schema<T>, wanted: 'an object' | 'an array' = 'an object'): Schema<T> {
  const check = z.transform((given, payload) => {
    if (kindOf(given) !== wanted) s.reportTo(payload)(wanted, [], kindOf(given));
    return given;
  });
  return z.pipe(check, schema);
}

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'string') return 'text';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** The secret itself. Messages never contain it. */
export function secret({ env, readFile, onMissing }: SecretSources): Schema<string> {
  return s.element((candidate, report) => {
    const [source, found] = find(candidate);
    if (source === undefined) return report(expected, [], candidate === '' ? 'empty text' : kindOf(candidate));
    if (found !== undefined && found.trim() !== '') return found.trim();
    if (onMissing === undefined)
      report(`${source} to hold a secret`, [], found === undefined ? 'nothing there' : 'empty text');
    else onMissing(`${source} holds no secret on this machine`);
    return 'missing';
  }, json);

  function find(candidate: unknown): [source?: string, found?: string | undefined] {
    if (typeof candidate === 'string' && candidate.trim() !== '') return ['the file', candidate];
    if (typeof candidate !== 'object' || candidate === null || Object.keys(candidate).length !== 1) return [];
    const name: unknown = Reflect.get(candidate, 'env');
    if (typeof name === 'string' && name !== '') return [`the environment variable ${name}`, env[name]];
    const path: unknown = Reflect.get(candidate, 'file');
    return typeof path === 'string' && path !== '' ? [`the file ${path}`, read(path)] : [];
  }

  function read(path: string): string | undefined {
    try {
      return readFile(path);
    } catch {
      return undefined;
    }
  }
}
