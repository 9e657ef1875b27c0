/** The options of `budgets()`. */
import { parseDuration } from '../../base/schema/duration.js';
import * as s from '../../base/schema/schema.js';
import type { ItemView } from '../../tiers/views.js';
import type { QuotaEstimate, TokenPrices } from '../quotas/quota-options.js';
import type { QuotaUnit } from '../quotas/rate-limit-headers.js';
import { type CalendarSpan, calendarSpans, isZone } from './calendar.js';

/** One limit of a budget. */
export interface BudgetLimit {
  /** The thing that is counted. `tokens`: input and output together. `cost`: by `prices`, or what `estimate` says. */
  unit: QuotaUnit;
  /** Units in `per`, above 0. */
  limit: number;
  /** `day`, `week`, `month` of the calendar; or a span in which they come back all the time. @default 'minute' */
  per?: number | string | undefined;
  /** The time zone of the calendar, such as `Europe/Berlin`. @default 'UTC' */
  zone?: string | undefined;
}

/** Budgets of the same limits. */
export interface BudgetOptions {
  /** The name in figures and sentences. @default none */
  name?: string | undefined;
  /** Each fairness ID has one; or each level of it: `acme`, and `acme/search`, which spends of both. @default 'path' */
  by?: 'flow' | 'path' | undefined;
  /** Only those whose name passes. @default all */
  is?: ((name: string) => boolean) | undefined;
  /** A request takes from all of them at once, or from none. */
  limits: BudgetLimit[];
}

/** Prices of a million tokens, in any currency. */
export interface ModelPrices extends TokenPrices {
  /** Of the part of the input that servers had cached. @default input */
  cachedInput?: number | undefined;
}

/** Prices by model: `gpt-4o*` is a family, of which the longest wins, and `*` any other. */
export type PricesByModel = Readonly<Record<string, ModelPrices>>;

export interface BudgetsOptions<R = unknown> {
  budgets: BudgetOptions[];
  /** For the unit `cost`. A model without prices costs what the dearest does. @default none */
  prices?: PricesByModel | undefined;
  /** Tells the expected consumption. @default by the fields `tokens`, `inputTokens`, `maxOutputTokens`, `model` */
  estimate?: ((item: ItemView<R>) => QuotaEstimate) | undefined;
  /** The calendar, ms of the Unix epoch. @default Date.now */
  wallClock?: (() => number) | undefined;
}

export type ResolvedLimit = Omit<BudgetLimit, 'per'> & { readonly per: number | CalendarSpan };
export type ResolvedBudget = s.Filled<Omit<BudgetOptions, 'limits'>, 'name' | 'is'> & {
  readonly limits: ResolvedLimit[];
};
export interface ResolvedBudgets extends s.Filled<Omit<BudgetsOptions, 'budgets'>, 'prices' | 'estimate'> {
  readonly budgets: ResolvedBudget[];
}

export const isCalendarSpan = (per: unknown): per is CalendarSpan =>
  typeof per === 'string' && Object.hasOwn(calendarSpans, per);

const span: s.Schema<number | CalendarSpan> = s.element((given, report) => {
  if (isCalendarSpan(given)) return given;
  const word = /^(?:second|minute|hour)$/.test(String(given)) ? `1${String(given)[0]}` : given;
  const ms = typeof word === 'number' ? word : typeof word === 'string' ? parseDuration(word) : NaN;
  if (ms > 0 && ms < Infinity) return ms;
  return report('a duration above 0, such as "1m", or one of second, minute, hour, day, week, month');
}, {});

const limit: s.Schema<ResolvedLimit> = s.object(
  {
    unit: s.oneOf('requests', 'inputTokens', 'outputTokens', 'tokens', 'cost'),
    limit: s.aboveZero(),
    per: s.optional(span, 60_000),
    zone: s.optional(s.value('a time zone, such as "Europe/Berlin"', isZone)),
  },
  ({ per, zone }, report) => {
    if (zone !== undefined && !isCalendarSpan(per))
      report('no zone, because only day, week and month have one', ['zone'], JSON.stringify(zone));
  },
);

const budget: s.Schema<ResolvedBudget> = s.object(
  {
    name: s.optional(s.text()),
    by: s.optional(s.oneOf('flow', 'path'), 'path'),
    is: s.optional(s.callable<(name: string) => boolean>('a function of a name')),
    limits: s.list(limit),
  },
  ({ limits }, report) => limits?.length === 0 && report('a limit at least', ['limits'], '[]'),
);

const price = s.object({ input: s.atLeastZero(), output: s.atLeastZero(), cachedInput: s.optional(s.atLeastZero()) });

export const budgetOptions: s.Schema<ResolvedBudgets> = /* @__PURE__ */ s.object(
  {
    budgets: s.list(budget),
    prices: s.optional(s.record(price)),
    estimate: s.optional(s.callable<(item: ItemView) => QuotaEstimate>('a function that returns figures')),
    wallClock: s.optional(s.callable<() => number>(), () => Date.now()),
  },
  ({ budgets, prices, estimate }, report) => {
    const isInCost = budgets?.some(({ limits }) => limits?.some(({ unit }) => unit === 'cost')) === true;
    if (isInCost && prices === undefined && estimate === undefined)
      report('prices by model, because a budget is in cost', ['prices']);
  },
);
