/** The options of shared budgets, and their checks. */
import {
  type AdmissionKey,
  type Clock,
  type Duration,
  realClock,
  type Schema,
  schemas,
  type Usage,
} from '../../index.js';
import { keyName } from '../leases/lease-options.js';

/** The cost of a request: an estimate at admission, without usage, and the actual cost at its end. */
export type BudgetCost<R = unknown> = (request: R, key: AdmissionKey, usage: Usage | undefined) => number;

/** One rate: so much for each span of time, with a burst. */
export interface SharedBudget<R = unknown> {
  /** Names the rate in keys and messages: `rpm`, `tpm`, `eur`. */
  readonly name: string;
  /** The amount that may be spent in each `per`, above 0. */
  readonly limit: number;
  /** @default '1m' */
  readonly per?: Duration | undefined;
  /** The amount that may be spent at once, above 0. @default `limit` */
  readonly burst?: number | undefined;
  /** `requests`: 1 each; `tokens`: the request's `tokens`, then what it reported; or a function. @default 'requests' */
  readonly cost?: 'requests' | 'tokens' | BudgetCost<R> | undefined;
}

export interface SharedBudgetsOptions<R = unknown> {
  /** Names these budgets: all replicas with this name share them. */
  readonly name: string;
  /** A request takes from all of them, or from none. */
  readonly budgets: readonly SharedBudget<R>[];
  /** Opens the names of keys. @default 'headgate' */
  readonly prefix?: string | undefined;
  /** Names the payer. @default the fairness ID */
  readonly payer?: ((request: R, key: AdmissionKey) => string) | undefined;
  /** Whether keys hold a hash of who pays, and not the name. @default false */
  readonly hashKeys?: boolean | undefined;
  /**
   * While the store is away: `share`: limit / replicas; `full`: the whole limit in each replica; `unlimited`;
   * `closed`. @default 'share'
   */
  readonly fallback?: 'share' | 'full' | 'unlimited' | 'closed' | undefined;
  /** Replicas, for the share and for the size of chunks; a function is asked each time. @default 2 */
  readonly replicas?: number | (() => number) | undefined;
  /** Payers that are remembered here. @default 10,000 */
  readonly maxPayers?: number | undefined;
  /** How long a call may take. @default '50ms' */
  readonly callTimeout?: Duration | undefined;
  /** @default realClock */
  readonly clock?: Clock | undefined;
  /** Source of jitter, 0…1. @default Math.random */
  readonly random?: (() => number) | undefined;
}

/** A rate with its units resolved. */
export interface Rate {
  readonly name: string;
  readonly limit: number;
  readonly burst: number;
  readonly periodUs: number;
  readonly costOf: BudgetCost;
}

export interface BudgetSettings {
  readonly name: string;
  readonly prefix: string;
  readonly rates: readonly Rate[];
  readonly payerOf: (request: unknown, key: AdmissionKey) => string;
  readonly hashKeys: boolean;
  readonly fallback: 'share' | 'full' | 'unlimited' | 'closed';
  readonly replicas: () => number;
  readonly maxPayers: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: () => number;
}

const {
  aboveZero,
  callable,
  clock,
  element,
  flag,
  list,
  object,
  oneOf,
  optional,
  positiveDuration,
  positiveInteger,
  randomSource,
} = schemas;

const perRequest: BudgetCost = () => 1;

const perToken: BudgetCost = (request, _key, usage) => {
  if (usage !== undefined && usage.promptTokens + usage.completionTokens > 0)
    return usage.promptTokens + usage.completionTokens;
  const tokens: unknown =
    typeof request === 'object' && request !== null && 'tokens' in request ? request.tokens : undefined;
  return typeof tokens === 'number' ? tokens : 0;
};

const words = oneOf('requests', 'tokens');
const cost: Schema<BudgetCost> = element((given, report) => {
  if (typeof given === 'function') return given as BudgetCost;
  const word = words.read(given, (expected) => report(`${expected}, or a function that tells the cost`));
  return word === 'requests' ? perRequest : perToken;
});

export const replicaCount: Schema<() => number> = element((given, report) => {
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

const budget = object({
  name: keyName,
  limit: aboveZero(),
  per: optional(positiveDuration('1m'), 60_000),
  burst: optional(aboveZero()),
  cost: optional(cost, perRequest),
});

const optionsSchema = object({
  name: keyName,
  budgets: list(budget),
  prefix: optional(keyName, 'headgate'),
  payer: optional(callable<BudgetSettings['payerOf']>()),
  hashKeys: optional(flag(), false),
  fallback: optional(oneOf('share', 'full', 'unlimited', 'closed'), 'share'),
  replicas: optional(replicaCount, () => 2),
  maxPayers: optional(positiveInteger(), 10_000),
  callTimeout: optional(positiveDuration('50ms'), 50),
  clock: optional(clock(), realClock),
  random: optional(randomSource(), Math.random),
});

/** @throws FlowConfigError that lists every problem */
export function budgetSettings(options: unknown, subject: string): BudgetSettings {
  const { budgets, payer, callTimeout, ...rest } = schemas.parse(optionsSchema, options, subject);
  const rates = budgets.map(({ name, limit, per, burst = limit, cost: costOf }) => {
    return { name, limit, burst, periodUs: per * 1_000, costOf };
  });
  return { ...rest, rates, timeoutMs: callTimeout, payerOf: payer ?? ((_request, { fairnessId }) => fairnessId) };
}

/** The part of every limit that one replica takes by itself while the store is away; 0: nothing. */
export function partOf(fallback: BudgetSettings['fallback'], replicas: () => number): number {
  if (fallback === 'unlimited') return Number.POSITIVE_INFINITY;
  if (fallback === 'closed') return 0;
  return fallback === 'full' ? 1 : 1 / Math.max(1, replicas());
}

/** The span of the rate that `amount` takes, µs, rounded up. */
export function spanOf({ limit, periodUs }: Rate, amount: number): number {
  const span = (amount * periodUs) / limit;
  // A sum of rounding errors is not a microsecond.
  return amount >= 0 ? Math.ceil(span - 1e-6) : -Math.floor(-span + 1e-6);
}

/** NaN would poison a balance for ever. */
export function checkedCost(amount: number, { name }: Rate): number {
  if (amount >= 0 && amount < Number.POSITIVE_INFINITY) return amount;
  throw new RangeError(`budget ${name}: a cost must be a finite number from 0 up; got ${String(amount)}`);
}
