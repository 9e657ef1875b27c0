/** The options of shared quotas, and their checks. */
import { type Clock, type Duration, realClock, schemas } from '../../index.js';
import { partOf, replicaCount } from '../budgets/budget-options.js';
import { keyName } from '../leases/lease-options.js';

export interface SharedQuotasOptions {
  /** Names these quotas: all replicas with this name share them. */
  readonly name: string;
  /**
   * Replicas that share them, for the size of chunks and for the share; a function is asked each time. More replicas
   * than this may together go over a quota by a chunk each. @default 2
   */
  readonly replicas?: number | (() => number) | undefined;
  /** A replica buys ahead what its part of a quota comes to in half of this. @default '1s' */
  readonly refreshInterval?: Duration | undefined;
  /**
   * While the store is away: `share`: limit / replicas; `full`: the whole limit in each replica; `unlimited`;
   * `closed`. @default 'share'
   */
  readonly fallback?: 'share' | 'full' | 'unlimited' | 'closed' | undefined;
  /** Opens the names of keys. @default 'headgate' */
  readonly prefix?: string | undefined;
  /** Whether keys hold a hash of the group's name (an endpoint, a label, a model), and not the name. @default false */
  readonly hashKeys?: boolean | undefined;
  /** How long a call may take. @default '50ms' */
  readonly callTimeout?: Duration | undefined;
  /** The clock of the controller. @default realClock */
  readonly clock?: Clock | undefined;
  /** Source of jitter, 0…1. @default Math.random */
  readonly random?: (() => number) | undefined;
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

const { clock, flag, object, oneOf, optional, positiveDuration, randomSource } = schemas;

const optionsSchema = object({
  name: keyName,
  replicas: optional(replicaCount, () => 2),
  refreshInterval: optional(positiveDuration('1s'), 1_000),
  fallback: optional(oneOf('share', 'full', 'unlimited', 'closed'), 'share'),
  prefix: optional(keyName, 'headgate'),
  hashKeys: optional(flag(), false),
  callTimeout: optional(positiveDuration('50ms'), 50),
  clock: optional(clock(), realClock),
  random: optional(randomSource(), Math.random),
});

/** @throws FlowConfigError that lists every problem */
export function quotaSettings(options: unknown, subject: string): QuotaSettings {
  const { refreshInterval, callTimeout, fallback, ...rest } = schemas.parse(optionsSchema, options, subject);
  return {
    ...rest,
    refreshMs: refreshInterval,
    timeoutMs: callTimeout,
    fallbackShare: () => partOf(fallback, rest.replicas),
  };
}
