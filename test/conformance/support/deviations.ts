/** `deviations.json`: which vectors headgate answers otherwise than the reference, and why. */
import { readFileSync } from 'node:fs';
import type { Vector } from './vectors.js';

/**
 * A condition on one value: a literal, which must be equal, or an object of these operators, all of which must hold.
 */
interface Operators {
  oneOf?: readonly unknown[];
  not?: Matcher;
  exists?: boolean;
  /** A regular expression for text. */
  matches?: string;
  /** A number, or paths of numbers in the vector, whose sum it is. */
  atLeast?: number | readonly string[];
  atMost?: number;
  isInteger?: boolean;
  /** Some element of an array, or some value of an object. */
  some?: Matcher;
  /** Exactly these keys. */
  keys?: readonly string[];
  /** At least one of these keys. */
  hasKey?: readonly string[];
  /** Conditions on paths below the value. */
  where?: Conditions;
}

type Matcher = string | number | boolean | null | Operators;

/** Path such as `input.type` → condition. All must hold. */
type Conditions = Readonly<Record<string, Matcher>>;

/**
 * An entry excuses what its vectors have in common, not single ones: vectors that nobody has seen yet fall under it
 * too. They are played, and must differ.
 */
export interface Deviation {
  /** A kind of vectors; a trailing `*` stands for any ending. */
  readonly kind: string;
  /** Only vectors of the kind that fulfil these conditions. */
  readonly where?: Conditions;
  readonly reason: string;
  /** What headgate does in place of what a vector expects, by the ids of vectors of the project. It is checked. */
  readonly instead?: Readonly<Record<string, object>>;
}

export const deviations: readonly Deviation[] = JSON.parse(
  readFileSync(new URL('../deviations.json', import.meta.url), 'utf8'),
);

/** The first entry that names the vector. */
export function deviationOf(vector: Vector): Deviation | undefined {
  return deviations.find((entry) => appliesTo(entry, vector));
}

/** True when some entry is about vectors of this kind. */
export function isListed(kind: string): boolean {
  return deviations.some((entry) => isOfKind(entry, kind));
}

function isOfKind({ kind }: Deviation, candidate: string): boolean {
  return kind.endsWith('*') ? candidate.startsWith(kind.slice(0, -1)) : candidate === kind;
}

function appliesTo(entry: Deviation, vector: Vector): boolean {
  return isOfKind(entry, vector.kind) && fulfils(vector.raw, entry.where ?? {}, vector.raw);
}

function fulfils(value: unknown, conditions: Conditions, root: unknown): boolean {
  return Object.entries(conditions).every(([path, matcher]) => matchesValue(valueAt(value, path), matcher, root));
}

/** Keys hold no dots, so that a path is unambiguous; undefined where nothing is. */
function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((here, key) => (isObject(here) ? Reflect.get(here, key) : undefined), value);
}

/** NaN when one of them is no number. */
function sumAt(root: unknown, paths: readonly string[]): number {
  return paths.reduce((sum, path) => sum + Number(valueAt(root, path) ?? Number.NaN), 0);
}

function matchesValue(value: unknown, matcher: Matcher, root: unknown): boolean {
  if (!isObject(matcher)) return value === matcher;
  const { oneOf, not, exists, matches, atLeast, atMost, isInteger, some, keys, hasKey, where } = matcher as Operators;
  const least = Array.isArray(atLeast) ? sumAt(root, atLeast) : atLeast;
  const children = isObject(value) ? Object.values(value) : [];
  const ownKeys = isObject(value) ? Object.keys(value) : [];
  return (
    (oneOf === undefined || oneOf.includes(value)) &&
    (not === undefined || !matchesValue(value, not, root)) &&
    (exists === undefined || exists === (value !== undefined)) &&
    (matches === undefined || (typeof value === 'string' && new RegExp(matches).test(value))) &&
    (atLeast === undefined || (typeof value === 'number' && typeof least === 'number' && value >= least)) &&
    (isInteger === undefined || isInteger === Number.isInteger(value)) &&
    (atMost === undefined || (typeof value === 'number' && value <= atMost)) &&
    (some === undefined || children.some((child) => matchesValue(child, some, root))) &&
    (keys === undefined || (ownKeys.length === keys.length && keys.every((key) => ownKeys.includes(key)))) &&
    (hasKey === undefined || hasKey.some((key) => ownKeys.includes(key))) &&
    (where === undefined || (isObject(value) && fulfils(value, where, root)))
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
