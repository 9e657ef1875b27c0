/** What the plans of the file let tenants spend, as tenants are told. */
import type { Constraint } from '../../index.js';
import type { Budgets } from '../../spending/index.js';
import type { QuotaFigure } from '../../types/index.js';

export function budgetsIn(constraints: readonly Constraint[]): Budgets | undefined {
  return constraints.find((each): each is Budgets => 'budgetsOf' in each);
}

function figuresOf(tenant: string, constraints: readonly Constraint[]): readonly QuotaFigure[] {
  return budgetsIn(constraints)?.budgetsOf(tenant, performance.now()) ?? [];
}

const leftOf = ({ limit, used, reserved }: QuotaFigure): number => Math.max(limit - used - reserved, 0);
const rounded = (amount: number): number => Number(amount.toFixed(6));

/** The answer to `GET /v1/budget`. */
export function budgetList(tenant: string, constraints: readonly Constraint[]): object {
  const data = figuresOf(tenant, constraints).map((figure) => {
    const { owner, unit, limit, perMs, calendar, used, reserved, resetsInMs } = figure;
    const amounts = { used: rounded(used), reserved: rounded(reserved), left: rounded(leftOf(figure)) };
    const resetsAt = Math.ceil((Date.now() + resetsInMs) / 1_000);
    return { of: owner, unit, limit, per: calendar ?? perMs / 1_000, ...amounts, resets_at: resetsAt };
  });
  return { object: 'list', data };
}

/** `x-ratelimit-…` as OpenAI has them, of the budget of which least is left. */
export function rateLimitHeaders(tenant: string, constraints: readonly Constraint[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const wanted of ['requests', 'tokens']) {
    const all = figuresOf(tenant, constraints).filter(({ unit }) => unit === wanted);
    const [least] = all.sort((a, b) => leftOf(a) - leftOf(b));
    if (least === undefined) continue;
    headers[`x-ratelimit-limit-${wanted}`] = String(least.limit);
    headers[`x-ratelimit-remaining-${wanted}`] = String(Math.floor(leftOf(least)));
    headers[`x-ratelimit-reset-${wanted}`] = `${Math.ceil(least.resetsInMs)}ms`;
  }
  return headers;
}
