/**
 * Budgets of plans: which plan a tenant has stands in `flowControl.tenants`, or at its key.
 *
 *     budgets: { plans: { team: [{ tokens: 200k, per: minute }, { cost: 50, per: month }] }, prices: { '*': { … } } }
 *
 * `acme` spends with all below it, such as `acme/search`, which may have a plan of its own.
 */
import type { Problems } from '../../base/problems.js';
import { option, row } from '../../base/schema/json-schema.js';
import * as s from '../../base/schema/schema.js';
import type { Constraint } from '../../index.js';
import { budgets, type PricesByModel } from '../../spending/index.js';

const units = ['requests', 'tokens', 'inputTokens', 'outputTokens', 'cost'] as const;

/** One limit: an amount of one unit, and its span. */
type FileLimit = { readonly [U in (typeof units)[number]]?: number | undefined } & {
  readonly per?: string | undefined;
  readonly zone?: string | undefined;
};

export interface BudgetsSection {
  readonly plans: Readonly<Record<string, readonly FileLimit[]>>;
  readonly prices?: PricesByModel | undefined;
  /** Where it keeps what was spent. */
  readonly file?: string | undefined;
  /** Answers bear `x-ratelimit-…`. */
  readonly headers: boolean;
}

const amount = s.optional(s.fromOne('an integer from 1 up, or a quantity like "200k"'));
const fileLimit = s.object(
  {
    ...{ requests: amount, tokens: amount, inputTokens: amount, outputTokens: amount },
    ...{ cost: s.optional(s.aboveZero()), per: s.optional(s.text()), zone: s.optional(s.text()) },
  },
  (given, report) => {
    const told = units.filter((name) => given[name] !== undefined);
    if (told.length !== 1) report(`an amount of one of ${units.join(', ')}`, [], told.join(', ') || 'none');
  },
);

export const budgetsSection: s.Schema<BudgetsSection> = s.object({
  plans: row('Limits, by plan.', s.record(s.list(fileLimit))),
  prices: option('By model.', s.objectWith<PricesByModel>('an object')),
  file: option('Outlives restarts.', s.text('a path')),
  headers: row('Answers bear `x-ratelimit-…`.', s.otherwise(s.flag(), false)),
});

/** The section of flow control, with the plans that keys name and those that have budgets. */
export function withPlans(
  flowControl: unknown,
  auth: unknown,
  section: BudgetsSection | undefined,
  problems: Problems,
): unknown {
  const { keys = [], anonymous }: { keys?: unknown; anonymous?: unknown } = Object(auth);
  const { tenants: told, plans, ...rest }: { tenants?: unknown; plans?: unknown } = Object(flowControl);
  const tenants = new Map<string, unknown>(Object.entries(Object(told)));
  for (const [index, sender] of [...(Array.isArray(keys) ? keys : []), anonymous].entries()) {
    const { tenant, plan } = Object(sender);
    if (typeof tenant !== 'string' || typeof plan !== 'string') continue;
    const other = tenants.get(tenant) ?? plan;
    if (other !== plan)
      problems.add(`auth.keys[${index}].plan`, `the plan ${other}, which ${tenant} has elsewhere`, plan);
    tenants.set(tenant, plan);
  }
  if (tenants.size === 0 && section === undefined) return flowControl;
  const named = Object.keys(section?.plans ?? {}).map((plan) => [plan, {}]);
  return { ...rest, plans: { ...Object.fromEntries(named), ...Object(plans) }, tenants: Object.fromEntries(tenants) };
}

/** The constraint that the budgets of plans are; undefined without any. Faults are noted. */
export function planBudgets(
  { plans, prices }: BudgetsSection,
  flowControl: unknown,
  problems: Problems,
): Constraint | undefined {
  const { tenants = {}, flows = {} }: { tenants?: object; flows?: object } = Object(flowControl);
  const planOf = new Map<string, unknown>(Object.entries(tenants));
  const all = Object.entries(plans).flatMap(([name, given]) => {
    const limits = given.map(({ per, zone, ...amounts }) => {
      const unit = units.find((each) => amounts[each] !== undefined) ?? 'tokens';
      return { unit, limit: amounts[unit] ?? 0, per, zone };
    });
    const own = { name, limits, by: 'path', is: (path: string) => planOf.get(path) === name } as const;
    const isOther = (id: string): boolean => !planOf.has(id) && !Object.hasOwn(flows, id);
    return planOf.get('*') === name ? [own, { ...own, by: 'flow', is: isOther } as const] : [own];
  });
  if (all.length === 0) return undefined;
  const pathOf = (path: string): string =>
    `budgets.${path.replace(/^budgets\[(\d+)\]\.limits/, (_, index) => `plans.${all[Number(index)]?.name}`)}`;
  return problems.during(() => budgets({ budgets: all, prices }), pathOf);
}
