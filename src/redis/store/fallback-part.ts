/** The part of a limit that one replica takes by itself while the store is away: options, and their checks. */
import { type Schema, schemas } from '../../index.js';

export interface FallbackOptions {
  /**
   * While the store is away: `share`: limit / replicas; `full`: the whole limit in each replica; `unlimited`;
   * `closed`. @default 'share'
   */
  readonly fallback?: 'share' | 'full' | 'unlimited' | 'closed' | undefined;
}

export interface FallbackSettings {
  readonly fallback: NonNullable<FallbackOptions['fallback']>;
  readonly replicas: () => number;
}

const { element, oneOf, optional } = schemas;

const replicaCount: Schema<() => number> = element((given, report) => {
  if (typeof given === 'function') return guardedCount(given as () => unknown);
  if (typeof given === 'number' && Number.isInteger(given) && given > 0) return () => given;
  report('an integer from 1 up, or a function that returns one');
  return undefined;
});

/** The host's function, guarded: an answer that is no number from 1 up counts as its last valid answer. */
function guardedCount(given: () => unknown): () => number {
  let last = 2;
  return () => {
    try {
      const count = given();
      if (typeof count === 'number' && count >= 1 && count < Number.POSITIVE_INFINITY) last = count;
    } catch {
      // Its last answer holds.
    }
    return last;
  };
}

export const fallbackShape: { readonly [K in keyof FallbackSettings]: Schema<FallbackSettings[K]> } = {
  fallback: optional(oneOf('share', 'full', 'unlimited', 'closed'), 'share'),
  replicas: optional(replicaCount, () => 2),
};

/** 0: nothing. Infinity: no limit. */
export function fallbackPart({ fallback, replicas }: FallbackSettings): number {
  if (fallback === 'unlimited') return Number.POSITIVE_INFINITY;
  if (fallback === 'closed') return 0;
  return fallback === 'full' ? 1 : 1 / Math.max(1, replicas());
}
