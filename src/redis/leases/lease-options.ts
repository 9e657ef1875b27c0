/** The options of the leases of a pool, and their checks. */
import * as s from '../../base/schema/schema.js';
import { type ConfigIssue, type Duration, FlowConfigError, type Schema } from '../../index.js';
import { keyName, type StoreOptions, type StoreSettings, storeShape } from '../store/store-options.js';

export type LeaseFallback = 'safe' | 'closed' | number;

export interface LeaseOptions extends StoreOptions {
  /** All replicas with this name share one limit. */
  pool: string;
  /**
   * Its name, kept over restarts. Found is HEADGATE_REPLICA, else the pod's name, or the host's with NODE_APP_INSTANCE
   * or PORT. @default found, or random
   */
  replica?: string | undefined;
  /** Its part beside others of weight 1; an integer from 1 up. @default 1 */
  weight?: number | undefined;
  /** The most that it ever uses: bounds a split store. @default no bound */
  maxShare?: number | undefined;
  /**
   * After a lease without an answer: a share that fits all (`safe`), 0 (`closed`), or a number. Numbers of several
   * replicas may add up to more than the pool has. @default 'safe'
   */
  fallback?: LeaseFallback | undefined;
  /** Without the store one begins with ⌊limit / replicas⌋ after a lease. @default it waits */
  replicas?: number | undefined;
  /** The longest time from one call to the next; up to a tenth less. @default '1s' */
  refreshInterval?: Duration | undefined;
  /** How long an answer holds; at least twice `refreshInterval`. @default '5s' */
  leaseDuration?: Duration | undefined;
  /** How long a silent replica's seats stay reserved. @default '60s' */
  drainDuration?: Duration | undefined;
  /** How long its safe share stays reserved after that. @default '10m' */
  forgetAfter?: Duration | undefined;
}

export interface SharedConcurrencyOptions extends LeaseOptions {
  /** Requests in flight of all replicas at which the pool, or an endpoint of weight 1, is full. This or `maxTokens`. */
  maxConcurrency?: number | undefined;
  /** Tokens in flight at which it is full; each replica may exceed it by its last request. */
  maxTokens?: number | undefined;
}

const words = s.oneOf('safe', 'closed');
const fallback: Schema<LeaseFallback> = s.element((given, report) => {
  if (typeof given !== 'number') return s.readBy(words, given, (expected) => report(`${expected}, or a limit`));
  if (Number.isInteger(given) && given >= 0) return given;
  return report('"safe", "closed", or a limit: an integer from 0 up');
});

/** The options with their defaults and units resolved. */
export interface ParsedLeaseOptions
  extends StoreSettings,
    Readonly<
      Pick<SharedConcurrencyOptions, 'pool' | 'replica' | 'maxShare' | 'replicas' | 'maxConcurrency' | 'maxTokens'>
    >,
    Readonly<Record<'weight' | 'refreshInterval' | 'leaseDuration' | 'drainDuration' | 'forgetAfter', number>> {
  readonly fallback: LeaseFallback;
}

export const leaseOptions: Schema<ParsedLeaseOptions> = s.object({
  ...storeShape,
  pool: keyName,
  replica: s.optional(keyName),
  weight: s.optional(s.positiveInteger(), 1),
  maxShare: s.optional(s.positiveInteger()),
  fallback: s.optional(fallback, 'safe'),
  replicas: s.optional(s.positiveInteger()),
  refreshInterval: s.optional(s.positiveDuration('1s'), 1_000),
  leaseDuration: s.optional(s.positiveDuration('5s'), 5_000),
  drainDuration: s.optional(s.duration(), 60_000),
  forgetAfter: s.optional(s.duration(), 600_000),
  maxConcurrency: s.optional(s.positiveInteger()),
  maxTokens: s.optional(s.positiveInteger()),
});

/** A lease must outlast one lost call. */
export function checkTiming({ refreshInterval, leaseDuration, callTimeout }: ParsedLeaseOptions, where: string): void {
  const issues: ConfigIssue[] = [];
  const least = `at least twice refreshInterval (${refreshInterval} ms)`;
  if (leaseDuration < 2 * refreshInterval)
    issues.push({ path: 'leaseDuration', expected: least, got: `${leaseDuration} ms` });
  const most = `at most leaseDuration (${leaseDuration} ms)`;
  if (callTimeout > leaseDuration) issues.push({ path: 'callTimeout', expected: most, got: `${callTimeout} ms` });
  if (issues.length > 0) throw new FlowConfigError(where, issues);
}
