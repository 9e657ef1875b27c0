/** The options of shared quotas, and their checks. */
import { type Clock, type Duration, schemas } from '../../index.js';
import { type FallbackOptions, fallbackPart, fallbackShape } from '../store/fallback-part.js';
import { keyName, type StoreOptions, storeShape } from '../store/store-options.js';

export interface SharedQuotasOptions extends StoreOptions, FallbackOptions {
  /** Names these quotas: all replicas with this name share them. */
  readonly name: string;
  /**
   * Replicas that share them, for the size of chunks and for the share; a function is asked each time. More replicas
   * than this may together go over a quota by a chunk each. @default 2
   */
  readonly replicas?: number | (() => number) | undefined;
  /** A replica buys ahead what its part of a quota comes to in half of this. @default '1s' */
  readonly refreshInterval?: Duration | undefined;
  /** Whether keys hold a hash of the group's name (an endpoint, a label, a model), and not the name. @default false */
  readonly hashKeys?: boolean | undefined;
}

export interface QuotaSettings {
  readonly name: string;
  readonly prefix: string;
  readonly hashKeys: boolean;
  readonly replicas: () => number;
  readonly refreshMs: number;
  readonly timeoutMs: number;
  /** The part of each quota that this replica takes by itself; 0: nothing, Infinity: no limit. */
  readonly fallbackShare: () => number;
  readonly clock: Clock;
  readonly random: () => number;
}

const { flag, object, optional, positiveDuration } = schemas;

const optionsSchema = object({
  ...storeShape,
  ...fallbackShape,
  name: keyName,
  refreshInterval: optional(positiveDuration('1s'), 1_000),
  hashKeys: optional(flag(), false),
});

/** @throws FlowConfigError that lists every problem */
export function quotaSettings(options: unknown, subject: string): QuotaSettings {
  const { refreshInterval, callTimeout, fallback, ...rest } = schemas.parse(optionsSchema, options, subject);
  return {
    ...rest,
    refreshMs: refreshInterval,
    timeoutMs: callTimeout,
    fallbackShare: () => fallbackPart({ fallback, replicas: rest.replicas }),
  };
}
