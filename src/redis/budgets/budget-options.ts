/** The options of shared budgets, and their checks. */
import * as s from '../../base/schema/schema.js';
import type { Duration, Schema, Usage } from '../../index.js';
import type { AdmissionKey } from '../../types/index.js';
import { type BucketOptions, type BucketSettings, bucketShape } from '../buckets/bucket-options.js';
import type { BucketTerms } from '../buckets/bucket-store.js';
import { keyName } from '../store/store-options.js';

/** The cost of a request: an estimate at admission, without usage, and the actual cost at its end. */
export type BudgetCost<R = unknown> = (request: R, key: AdmissionKey, usage: Usage | undefined) => number;

/** One rate: so much for each span of time, with a burst. */
export interface SharedBudget<R = unknown> {
  /** Names the rate in keys and messages: `rpm`, `tpm`, `eur`. */
  readonly name: string;
  /** The amount that may be spent in each `per`, above 0. */
  readonly limit: number;
  /** The span of time that `limit` is for. @default '1m' */
  readonly per?: Duration | undefined;
  /** The amount that may be spent at once, above 0. @default `limit` */
  readonly burst?: number | undefined;
  /** `requests`: 1 each; `tokens`: the request's `tokens`, then what it reported. @default 'requests' */
  readonly cost?: 'requests' | 'tokens' | BudgetCost<R> | undefined;
}

export interface SharedBudgetsOptions<R = unknown> extends BucketOptions {
  /** A request takes from all of them, or from none. */
  readonly budgets: readonly SharedBudget<R>[];
  /** Names the payer. @default the fairness ID */
  readonly payer?: ((request: R, key: AdmissionKey) => string) | undefined;
  /** Payers that are remembered here. @default 10,000 */
  readonly maxPayers?: number | undefined;
}

export interface Rate extends BucketTerms {
  readonly name: string;
  readonly costOf: BudgetCost;
}

export interface BudgetSettings extends BucketSettings {
  readonly rates: readonly Rate[];
  readonly payerOf: (request: unknown, key: AdmissionKey) => string;
  readonly maxPayers: number;
}

const perRequest: BudgetCost = () => 1;

const perToken: BudgetCost = (request, _key, usage) => {
  if (usage !== undefined && usage.promptTokens + usage.completionTokens > 0)
    return usage.promptTokens + usage.completionTokens;
  const tokens: unknown = Object(request).tokens;
  return typeof tokens === 'number' ? tokens : 0;
};

const words = s.oneOf('requests', 'tokens');
const cost: Schema<BudgetCost> = s.element((given, report) => {
  if (typeof given === 'function') return given as BudgetCost;
  const word = s.readBy(words, given, (expected) => report(`${expected}, or a function that tells the cost`));
  return word === 'requests' ? perRequest : perToken;
});

const budget = s.object({
  name: keyName,
  limit: s.aboveZero(),
  per: s.optional(s.positiveDuration('1m'), 60_000),
  burst: s.optional(s.aboveZero()),
  cost: s.optional(cost, perRequest),
});

const optionsSchema = s.object({
  ...bucketShape,
  budgets: s.list(budget),
  payer: s.optional(s.callable<BudgetSettings['payerOf']>()),
  maxPayers: s.optional(s.positiveInteger(), 10_000),
});

/** @throws FlowConfigError that lists every problem */
export function budgetSettings(options: unknown, subject: string): BudgetSettings {
  const { budgets, payer, ...rest } = s.parse(optionsSchema, options, subject);
  const rates = budgets.map(({ name, limit, per: perMs, burst = limit, cost: costOf }) => {
    return { name, limit, burst, perMs, costOf };
  });
  const payerOf = payer ?? ((_request, { fairnessId }) => fairnessId);
  return { ...rest, rates, payerOf };
}

/** The cost for each rate. @throws RangeError for a cost that is no number from 0 up, which would poison a balance */
export function costsOf({ rates }: BudgetSettings, request: unknown, key: AdmissionKey, usage?: Usage): number[] {
  return rates.map(({ name, costOf }) => {
    const amount = costOf(request, key, usage);
    if (amount >= 0 && amount < Infinity) return amount;
    throw new RangeError(`budget ${name}: a cost must be a finite number from 0 up; got ${String(amount)}`);
  });
}
