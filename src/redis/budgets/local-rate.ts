/**
 * The rates of one payer in this process alone, while the store is away: the same algorithm, with a part of the limit.
 */
import { fallbackPart } from '../store/fallback-part.js';
import { type BudgetSettings, spanOf } from './budget-options.js';

export class LocalRates {
  private readonly tats = new Map<string, number[]>();
  private readonly settings: BudgetSettings;

  constructor(settings: BudgetSettings) {
    this.settings = settings;
  }

  /** Takes all costs or none. Returns the ms until the request would pass; 0 when it did. O(rates). */
  take(payer: string, costs: readonly number[]): number {
    const { rates, clock, maxPayers } = this.settings;
    const part = fallbackPart(this.settings);
    if (part === Number.POSITIVE_INFINITY) return 0;
    if (part === 0) return 1_000;
    const nowUs = clock.now() * 1_000;
    const before = this.tats.get(payer) ?? rates.map(() => nowUs);
    let waitUs = 0;
    const after = rates.map((rate, index) => {
      const tat = Math.max(before[index] as number, nowUs) + spanOf(rate, costs[index] as number) / part;
      waitUs = Math.max(waitUs, tat - spanOf(rate, rate.burst) - nowUs);
      return tat;
    });
    if (waitUs > 0) return Math.ceil(waitUs / 1_000);
    this.tats.delete(payer);
    this.tats.set(payer, after);
    // The payer that has not paid for the longest time is removed first.
    if (this.tats.size > maxPayers) for (const oldest of this.tats.keys()) return this.forget(oldest);
    return 0;
  }

  clear(): void {
    this.tats.clear();
  }

  private forget(payer: string): number {
    this.tats.delete(payer);
    return 0;
  }
}
