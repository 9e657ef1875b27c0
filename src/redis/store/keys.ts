/**
 * The names of all keys and channels of shared state.
 *
 *     prefix:{pool}:lease            prefix:{name:payer}:budget   prefix:{name}:marks
 *     prefix:{pool}:lease:endpoint   prefix:{name:group}:quota    prefix:{name}:sessions
 *     prefix:{name}:fairness:served  prefix:{name}:fairness:heard
 *
 * Invariant: keys of one call have the same text in braces, so that they are in one slot of a cluster.
 */
import { createHash } from 'node:crypto';

type KeySpace = Readonly<Record<'prefix' | 'name', string>>;

export function leaseKey({ prefix, name }: KeySpace, endpoint: string | undefined): string {
  return `${prefix}:{${name}}:lease${endpoint === undefined ? '' : `:${endpoint}`}`;
}

/** A bucket of a payer, or of a group, whose names may hold anything. `part` is the budget's name, or `quota`. */
export function bucketKey(space: KeySpace & { readonly hashKeys: boolean }, owner: string, part: string): string {
  const { prefix, name, hashKeys } = space;
  return `${prefix}:{${name}:${keyPart(owner, hashKeys || owner.length > longestOwner)}}:${part}`;
}

export const fairnessKeys = ({ prefix, name }: KeySpace): string[] =>
  ['served', 'heard'].map((part) => `${prefix}:{${name}}:fairness:${part}`);

export const channelOf = ({ prefix, name }: KeySpace, kind: 'marks' | 'sessions'): string =>
  `${prefix}:{${name}}:${kind}`;

/** What stands for a name that is secret or long: 32 hexadecimal digits, the first half of its SHA-256. */
export const hashedName = (text: string): string => hexDigest('sha256', text).slice(0, 32);

/** Hexadecimal text. A client of a store needs sockets, so it runs where Node's modules are. */
export const hexDigest = (algorithm: 'sha1' | 'sha256', text: string): string =>
  createHash(algorithm).update(text).digest('hex');

/** Payers and groups with longer names are known by a hash. */
const longestOwner = 200;

/** A hash, or the text with everything encoded that means something in a key. Never throws. */
function keyPart(text: string, isHashed: boolean): string {
  if (isHashed) return hashedName(text);
  // Half a surrogate pair cannot be encoded. A hash takes it for the same character.
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));
}
