/** The options of shared budgets, and their checks. */
import { type AdmissionKey, type Clock, type Duration, type Schema, schemas, type Usage } from '../../index.js';
import { type FallbackOptions, type FallbackSettings, fallbackShape } from '../store/fallback-part.js';
import { keyName, type StoreOptions, storeShape } from '../store/store-options.js';

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

export interface SharedBudgetsOptions<R = unknown> extends StoreOptions, FallbackOptions {
  /** Names these budgets: all replicas with this name share them. */
  readonly name: string;
  /** A request takes from all of them, or from none. */
  readonly budgets: readonly SharedBudget<R>[];
  /** Names the payer. @default the fairness ID */
  readonly payer?: ((request: R, key: AdmissionKey) => string) | undefined;
  /** Whether keys hold a hash of who pays, and not the name. @default false */
  readonly hashKeys?: boolean | undefined;
  /** Replicas, for the share and for the size of chunks; a function is asked each time. @default 2 */
  readonly replicas?: number | (() => number) | undefined;
  /** Payers that are remembered here. @default 10,000 */
  readonly maxPayers?: number | undefined;
}

/** A rate with its units resolved. */
export interface Rate {
  readonly name: string;
  readonly limit: number;
  readonly burst: number;
  readonly periodUs: number;
  readonly costOf: BudgetCost;
}

export interface BudgetSettings extends FallbackSettings {
  readonly name: string;
  readonly prefix: string;
  readonly rates: readonly Rate[];
  readonly payerOf: (request: unknown, key: AdmissionKey) => string;
  readonly hashKeys: boolean;
  readonly maxPayers: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: () => number;
}

const { aboveZero, callable, element, flag, list, object, oneOf, optional, positiveDuration, positiveInteger } =
  schemas;

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

const budget = object({
  name: keyName,
  limit: aboveZero(),
  per: optional(positiveDuration('1m'), 60_000),
  burst: optional(aboveZero()),
  cost: optional(cost, perRequest),
});

const optionsSchema = object({
  ...storeShape,
  ...fallbackShape,
  name: keyName,
  budgets: list(budget),
  payer: optional(callable<BudgetSettings['payerOf']>()),
  hashKeys: optional(flag(), false),
  maxPayers: optional(positiveInteger(), 10_000),
});

/** @throws FlowConfigError that lists every problem */
export function budgetSettings(options: unknown, subject: string): BudgetSettings {
  const { budgets, payer, callTimeout, ...rest } = schemas.parse(optionsSchema, options, subject);
  const rates = budgets.map(({ name, limit, per, burst = limit, cost: costOf }) => {
    return { name, limit, burst, periodUs: per * 1_000, costOf };
  });
  return { ...rest, rates, timeoutMs: callTimeout, payerOf: payer ?? ((_request, { fairnessId }) => fairnessId) };
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
