/** The options that the parts of shared state have in common, and their checks. */
import * as s from '../../base/schema/schema.js';
import { type Clock, type Duration, realClock, type Schema } from '../../index.js';

export interface StoreOptions {
  /** Opens the names of keys. @default 'headgate' */
  readonly prefix?: string | undefined;
  /** How long a call may take. @default '50ms' */
  readonly callTimeout?: Duration | undefined;
  /** The clock of the controller. @default realClock */
  readonly clock?: Clock | undefined;
  /** Source of jitter, 0…1. @default Math.random */
  readonly random?: (() => number) | undefined;
}

export type StoreSettings = Readonly<{ prefix: string; callTimeout: number; clock: Clock; random: () => number }>;

export const isKeyName = (candidate: unknown): candidate is string =>
  typeof candidate === 'string' && /^[^{}\s]{1,200}$/.test(candidate);
export const keyName: Schema<string> = s.value('a name of up to 200 characters without blanks and braces', isKeyName);

export const storeShape: { readonly [K in keyof StoreSettings]: Schema<StoreSettings[K]> } = {
  prefix: s.optional(keyName, 'headgate'),
  callTimeout: s.optional(s.positiveDuration('50ms'), 50),
  clock: s.optional(s.clock(), realClock),
  random: s.optional(s.randomSource(), Math.random),
};

/** It is never the same twice, because a restarted replica must not be taken for the one that died. */
export function newReplicaId(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(9));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
