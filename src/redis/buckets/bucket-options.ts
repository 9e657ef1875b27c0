/** The options that quotas and budgets on a store have in common, and their checks. */
import * as s from '../../base/schema/schema.js';
import type { Schema } from '../../index.js';
import { keyName, type StoreOptions, type StoreSettings, storeShape } from '../store/store-options.js';

export interface BucketOptions extends StoreOptions {
  /** All replicas with this name share them. */
  readonly name: string;
  /** Replicas that share them; more may go over a limit by a chunk each. @default 2 */
  readonly replicas?: number | (() => number) | undefined;
  /** Whether keys hold hashes of names of payers or groups. @default false */
  readonly hashKeys?: boolean | undefined;
  /** While the store is away, `share`: limit / replicas; `full`: all of it in each replica. @default 'share' */
  readonly fallback?: 'share' | 'full' | 'unlimited' | 'closed' | undefined;
}

export interface BucketSettings extends StoreSettings {
  readonly name: string;
  readonly hashKeys: boolean;
  readonly replicas: () => number;
  readonly fallback: NonNullable<BucketOptions['fallback']>;
}

const replicaCount: Schema<() => number> = s.element((given, report) => {
  if (typeof given === 'function') return guardedCount(given as () => unknown);
  if (typeof given === 'number' && Number.isInteger(given) && given > 0) return () => given;
  return report('an integer from 1 up, or a function that returns one');
});

/** The host's function, guarded: an answer that is no number from 1 up counts as its last valid answer. */
function guardedCount(given: () => unknown): () => number {
  let last = 2;
  return () => {
    try {
      const count = given();
      if (typeof count === 'number' && count >= 1 && count < Infinity) last = count;
    } catch {
      // Its last answer holds.
    }
    return last;
  };
}

export const bucketShape: { readonly [K in keyof BucketSettings]: Schema<BucketSettings[K]> } = {
  ...storeShape,
  name: keyName,
  hashKeys: s.optional(s.flag(), false),
  replicas: s.optional(replicaCount, () => 2),
  fallback: s.optional(s.oneOf('share', 'full', 'unlimited', 'closed'), 'share'),
};

const parts = { full: 1, unlimited: Infinity, closed: 0 };

/** The part of each limit that a replica takes by itself; 0: nothing, Infinity: no limit. */
export function fallbackPart({ fallback, replicas }: BucketSettings): number {
  return fallback === 'share' ? 1 / replicas() : parts[fallback];
}
