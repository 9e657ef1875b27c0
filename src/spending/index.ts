/** `headgate/budgets`: what tenants may spend. */
export type { Budgets } from '../constraints/budgets/budget-limit.js';
export type { BudgetOptions, BudgetsOptions, PricesByModel } from '../constraints/budgets/budget-options.js';
export type { SavedBudget } from '../constraints/budgets/budget-table.js';
export { budgets } from '../core/budgets.js';
