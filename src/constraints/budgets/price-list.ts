/** What tokens cost, by model. Invariant: a model without a price is never free. */
import { isOfFamily } from '../quotas/group-table.js';
import type { Amounts } from '../quotas/request-estimate.js';
import type { ModelPrices, PricesByModel } from './budget-options.js';

export class PriceList {
  private readonly prices: PricesByModel;
  /** What a model without prices costs. */
  private readonly dearest: ModelPrices;

  constructor(prices: PricesByModel) {
    const most = (key: 'input' | 'output'): number => Math.max(0, ...Object.values(prices).map((each) => each[key]));
    this.prices = prices;
    this.dearest = { input: most('input'), output: most('output') };
  }

  has(model: string): boolean {
    return this.of(model) !== this.dearest;
  }

  costOf(model: string, { inputTokens, outputTokens }: Amounts, cachedTokens = 0): number {
    const { input, output, cachedInput = input } = this.of(model);
    const cached = Math.max(0, Math.min(cachedTokens, inputTokens)) || 0;
    return ((inputTokens - cached) * input + cached * cachedInput + outputTokens * output) / 1e6;
  }

  private of(model: string): ModelPrices {
    const { prices } = this;
    const families = Object.keys(prices).filter((family) => family.endsWith('*') && isOfFamily(model, family));
    const longest = families.sort((a, b) => b.length - a.length)[0] ?? '';
    return (Object.hasOwn(prices, model) ? prices[model] : prices[longest]) ?? this.dearest;
  }
}
