/** `headgate/budgets`: what tenants may spend. */
export type { Budgets } from '../constraints/budgets/budget-limit.js';
export type {
  BudgetLimit,
  BudgetOptions,
  BudgetsOptions,
  ModelPrices,
  PricesByModel,
} from '../constraints/budgets/budget-options.js';
export type { SavedBudget } from '../constraints/budgets/budget-table.js';
export { budgets } from '../core/budgets.js';
